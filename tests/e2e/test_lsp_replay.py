"""A real file typed through the user's own command and a daemon: no answer is stale, out of place, or there twice."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_latency import replay, table


@pytest.fixture
def home() -> Iterator[Path]:
    """A home whose path is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="ea-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("keys", [400, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_what_is_shown_while_a_file_is_written_is_what_belongs_there(keys: int, home: Path) -> None:
    found = replay(keys, daemon="scripted", debounce_ms=0, home=home)
    assert found.counts["keys"] == keys
    assert found.counts["shown"] > keys // 2
    assert found.counts["typed along"] > keys // 2
    assert found.counts["overtaken"] > keys // 10
    assert any(answer.stages for answer in found.answers)
    assert "| daemon: decode |" in table(found.answers)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_models_text_is_never_stale_nor_there_twice(home: Path) -> None:
    found = replay(1_000, daemon="tiny", debounce_ms=0, home=home)
    assert found.counts["shown"] > 0
    assert found.counts["overtaken"] > 0
