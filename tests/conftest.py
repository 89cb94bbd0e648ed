"""Where the tests' models are kept, and what happens to a test whose model or device is not here."""

import os
import tempfile

import pytest

HOME = "EAGLE_ASSIST_HOME"


def pytest_configure(config: pytest.Config) -> None:
    """Keep the user's own folders out of the tests, and the tests off the network.

    The default model is joined and converted once and kept in pytest's cache, so that the next run starts quickly;
    without that cache (`-p no:cacheprovider`) it is made for this run alone.
    """
    if HOME not in os.environ:
        os.environ[HOME] = _kept(config) or _passing(config)
    os.environ["HF_HUB_OFFLINE"] = "1"


def _kept(config: pytest.Config) -> str | None:
    cache: pytest.Cache | None = getattr(config, "cache", None)
    return str(cache.mkdir("eagle-assist")) if cache else None


def _passing(config: pytest.Config) -> str:
    folder = tempfile.TemporaryDirectory(prefix="eagle-assist-")
    config.add_cleanup(folder.cleanup)
    return folder.name


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run. In continuous integration a missing default model is a failure."""
    if item.get_closest_marker("gpu"):
        _skip_without_gpu()
    if item.get_closest_marker("model"):
        _need_default_model()


def _skip_without_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def _need_default_model() -> None:
    from models.catalog import DEFAULT_MODEL
    from models.registry import list_models

    states = {entry.name: entry.state for entry in list_models()}
    if states[DEFAULT_MODEL] == "absent":
        message = f"the default model {DEFAULT_MODEL} is not installed (extra default-model)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
