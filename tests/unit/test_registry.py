"""Names to files: the catalogue's models and their parts, folders, GGUF files, the Hugging Face cache, hashes."""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from huggingface_hub.errors import HfHubHTTPError

from assistant import paths
from assistant.errors import ModelCorruptError, ModelNotFoundError, StorageError
from models import hashes, hub, registry
from models.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry
from models.parts import numbered
from tests.support.tiny_folder import write_model
from tests.support.tiny_gguf import write_gguf
from tests.support.tiny_parts import SITE_VARIABLE, install_parts, tiny_catalog

PAYLOAD = b"GGUF" + bytes(range(256)) * 4000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and an empty Hugging Face cache."""
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "home"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, CatalogEntry]:
    """A model named `tiny` in three installed packages."""
    install_parts(tmp_path / "site", PAYLOAD)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tiny_catalog(PAYLOAD)


def test_parts_are_joined_verified_and_kept_with_progress(catalog: dict[str, CatalogEntry], home: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    source = registry.resolve("tiny", lambda *step: seen.append(step), catalog=catalog)
    assert source.path == home / "cache" / "models" / "tiny.gguf"
    assert source.path.read_bytes() == PAYLOAD
    assert source.fingerprint == catalog["tiny"].sha256
    assert seen[-1] == ("join", len(PAYLOAD), len(PAYLOAD))
    assert [path.name for path in source.path.parent.iterdir() if path.suffix == ".tmp"] == []


def test_the_packages_of_parts_are_never_imported(catalog: dict[str, CatalogEntry]) -> None:
    registry.resolve("tiny", catalog=catalog)
    assert not [name for name in sys.modules if name.startswith("tiny_part")]


def test_a_joined_model_is_neither_joined_nor_hashed_again(catalog: dict[str, CatalogEntry], tmp_path: Path) -> None:
    registry.resolve("tiny", catalog=catalog)
    shutil.rmtree(tmp_path / "site")
    seen: list[str] = []
    registry.resolve("tiny", lambda stage, *_: seen.append(stage), catalog=catalog)
    assert seen == []


def test_two_processes_that_join_at_once_do_not_hurt_each_other(tmp_path: Path, home: Path) -> None:
    install_parts(tmp_path / "site", PAYLOAD)
    environment = os.environ | {SITE_VARIABLE: str(tmp_path / "site"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.support.tiny_parts"]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(3)]
    ends = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    joined = home / "cache" / "models" / "tiny.gguf"
    assert joined.read_bytes() == PAYLOAD
    assert sorted(end.decode().split()[0] for end in ends) == ["found", "found", "joined"]


def test_what_a_killed_join_left_behind_is_removed(catalog: dict[str, CatalogEntry], home: Path) -> None:
    folder = home / "cache" / "models"
    folder.mkdir(parents=True)
    for name in (".tiny.gguf.0123abcd.tmp", ".tiny2.gguf.0123abcd.tmp"):
        (folder / name).write_bytes(PAYLOAD[:100])
    registry.resolve("tiny", catalog=catalog)
    assert [path.name for path in folder.glob(".*.tmp")] == [".tiny2.gguf.0123abcd.tmp"]


def test_a_missing_model_names_the_command_that_installs_it(catalog: dict[str, CatalogEntry], tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "site")
    with pytest.raises(ModelNotFoundError, match=r"pip install 'eagle-assist\[tiny\]'.*pipx") as caught:
        registry.resolve("tiny", catalog=catalog)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelNotFoundError, match="pip install"):
        registry.fetch("tiny", catalog=catalog)


def test_a_part_that_is_missing_or_of_another_version_is_counted(
    catalog: dict[str, CatalogEntry], tmp_path: Path
) -> None:
    (tmp_path / "site" / "tiny_part2" / "data" / "part02.bin").unlink()
    with pytest.raises(ModelNotFoundError, match="1 of its 3 packages are missing"):
        registry.resolve("tiny", catalog=catalog)
    install_parts(tmp_path / "site", PAYLOAD, version="2.0")
    with pytest.raises(ModelNotFoundError, match="it is not installed"):
        registry.resolve("tiny", catalog=catalog)


def test_damaged_parts_leave_nothing_behind(catalog: dict[str, CatalogEntry], tmp_path: Path, home: Path) -> None:
    part = tmp_path / "site" / "tiny_part2" / "data" / "part02.bin"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(ModelCorruptError, match=r"installed parts of tiny\.gguf are damaged.*--force-reinstall"):
        registry.resolve("tiny", catalog=catalog)
    assert not (home / "cache" / "models" / "tiny.gguf").exists()


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_damaged_joined_file_is_refused_and_fetch_mends_it(catalog: dict[str, CatalogEntry], damage: str) -> None:
    path = registry.resolve("tiny", catalog=catalog).path
    path.write_bytes(PAYLOAD[:-5] if damage == "truncated" else PAYLOAD[:-1] + b"x")
    with pytest.raises(ModelCorruptError, match=r"tiny\.gguf is truncated or damaged.*models fetch tiny"):
        registry.resolve("tiny", catalog=catalog)
    [check] = registry.verify("tiny", catalog=catalog)
    assert not check.ok
    registry.fetch("tiny", catalog=catalog)
    assert path.read_bytes() == PAYLOAD
    [check] = registry.verify("tiny", catalog=catalog)
    assert check.ok
    assert check.sha256 == hashlib.sha256(PAYLOAD).hexdigest()


def test_a_touched_but_sound_file_is_hashed_once_more(catalog: dict[str, CatalogEntry]) -> None:
    path = registry.resolve("tiny", catalog=catalog).path
    os.utime(path, ns=(1, 1))
    stages: list[str] = []
    registry.resolve("tiny", lambda stage, *_: stages.append(stage), catalog=catalog)
    registry.resolve("tiny", catalog=catalog)
    assert set(stages) == {"verify"}
    assert hashes.is_noted(path, catalog["tiny"].sha256)


def test_a_full_disk_is_noticed_before_the_join(
    catalog: dict[str, CatalogEntry], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    with pytest.raises(StorageError, match=r"MB free and 1.0 MB are needed.*EAGLE_ASSIST_HOME"):
        registry.resolve("tiny", catalog=catalog)
    assert not (home / "cache" / "models" / "tiny.gguf").exists()


def test_a_disk_that_fills_up_in_the_middle_leaves_nothing_behind(
    catalog: dict[str, CatalogEntry], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="the disk is full"):
        registry.resolve("tiny", catalog=catalog)
    assert [path.name for path in (home / "cache" / "models").iterdir() if not path.name.endswith(".lock")] == []


def test_a_read_only_cache_is_one_sentence_when_the_model_must_be_joined(
    catalog: dict[str, CatalogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_only(monkeypatch)
    with pytest.raises(StorageError, match=r"read-only; point EAGLE_ASSIST_HOME"):
        registry.resolve("tiny", catalog=catalog)


def test_a_read_only_cache_serves_what_it_holds(
    catalog: dict[str, CatalogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = registry.resolve("tiny", catalog=catalog).path
    os.utime(path, ns=(1, 1))
    read_only(monkeypatch)
    assert registry.resolve("tiny", catalog=catalog).path == path


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new file is refused, as on a file system that is mounted read-only; root may write anywhere else."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("assistant.files._temporary", refuse)


def test_the_list_says_what_is_ready_installed_and_absent(
    catalog: dict[str, CatalogEntry], tmp_path: Path, home: Path
) -> None:
    def states() -> list[tuple[str, Path | None]]:
        return [(entry.state, entry.path) for entry in registry.list_models(catalog=catalog)]

    assert states() == [("installed", None)]
    registry.resolve("tiny", catalog=catalog)
    assert states() == [("ready", home / "cache" / "models" / "tiny.gguf")]
    shutil.rmtree(tmp_path / "site")
    (home / "cache" / "models" / "tiny.gguf").unlink()
    assert states() == [("absent", None)]


def test_paths_of_models(catalog: dict[str, CatalogEntry], tmp_path: Path, home: Path) -> None:
    assert registry.path("tiny", catalog=catalog) == home / "cache" / "models" / "tiny.gguf"
    folder = write_model(tmp_path / "model")
    assert registry.path(str(folder)) == folder


def test_an_unknown_name_lists_the_remedies() -> None:
    for name in ["nothing", "no/thing", "./no/such/folder", "no/thing/file.gguf"]:
        with pytest.raises(ModelNotFoundError, match=r"pip install 'eagle-assist\[default-model\]'") as caught:
            registry.resolve(name)
        assert all(known in str(caught.value) for known in CATALOG)


def test_a_folder_and_a_file_change_their_fingerprint_with_their_contents(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    first = registry.resolve(str(folder))
    assert (first.kind, first.name, first.path) == ("folder", "model", folder)
    assert registry.resolve(str(folder)) == first
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    assert registry.resolve(str(folder)).fingerprint != first.fingerprint
    write_gguf(tmp_path / "m.gguf")
    one = registry.resolve(str(tmp_path / "m.gguf"))
    assert (one.kind, one.name) == ("gguf", "m")
    os.utime(tmp_path / "m.gguf", ns=(1, 1))
    assert registry.resolve(str(tmp_path / "m.gguf")).fingerprint != one.fingerprint


def test_a_file_of_another_kind_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"hello")
    with pytest.raises(ModelCorruptError, match=r"m\.bin is not a GGUF file"):
        registry.resolve(str(tmp_path / "m.bin"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelCorruptError, match=r"empty holds no config\.json"):
        registry.resolve(str(tmp_path / "empty"))


def test_a_local_model_is_hashed_without_a_verdict(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    [check] = registry.verify(str(folder))
    assert check.path == folder / "model.safetensors"
    assert check.sha256 == hashlib.sha256(check.path.read_bytes()).hexdigest()
    assert check.expected is None
    assert check.ok


def cached(hub_folder: Path, repository: str, model: Path, *, as_blobs: bool = False) -> Path:
    """Put a folder into the Hugging Face cache as the hub's client does."""
    root = hub_folder / f"models--{repository.replace('/', '--')}"
    snapshot = root / "snapshots" / "0123abc"
    shutil.copytree(model, snapshot)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("0123abc")
    if as_blobs:
        (root / "blobs").mkdir()
        for file in snapshot.glob("*.safetensors"):
            blob = root / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
            file.rename(blob)
            file.symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


def test_a_model_in_the_hugging_face_cache_is_found_listed_and_verified(tmp_path: Path) -> None:
    snapshot = cached(tmp_path / "hub", "some-one/tiny-coder", write_model(tmp_path / "model"), as_blobs=True)
    source = registry.resolve("some-one/tiny-coder")
    assert (source.kind, source.name, source.path) == ("folder", "some-one/tiny-coder", snapshot)
    [listed] = [entry for entry in registry.list_models() if entry.name not in CATALOG]
    assert (listed.name, listed.state) == ("some-one/tiny-coder", "ready")
    assert listed.size == (snapshot / "model.safetensors").stat().st_size
    [check] = registry.verify("some-one/tiny-coder")
    assert check.expected == check.sha256
    blob = (snapshot / "model.safetensors").resolve()
    blob.write_bytes(b"damaged")
    [check] = registry.verify("some-one/tiny-coder")
    assert not check.ok


def test_a_cached_repository_of_gguf_files_gives_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write_gguf(tmp_path / "files" / "a.gguf")
    snapshot = cached(tmp_path / "hub", "o/quants", tmp_path / "files")
    assert registry.resolve("o/quants").path == snapshot / "a.gguf"
    write_gguf(snapshot / "b.gguf")
    with pytest.raises(ModelCorruptError, match=r"several GGUF files; name one of o/quants/a\.gguf, o/quants/b\.gguf"):
        registry.resolve("o/quants")
    assert registry.resolve("o/quants/b.gguf").path == snapshot / "b.gguf"


def test_a_cached_repository_without_weights_is_named(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "config.json").write_text("{}")
    cached(tmp_path / "hub", "o/empty", tmp_path / "files")
    with pytest.raises(ModelCorruptError, match="models fetch o/empty"):
        registry.resolve("o/empty")
    assert [entry.name for entry in registry.list_models()] == list(CATALOG)


def test_resolving_never_reaches_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        pytest.fail("reached for the network")

    monkeypatch.setattr("socket.socket.connect", fail)
    monkeypatch.setattr("socket.getaddrinfo", fail)
    with pytest.raises(ModelNotFoundError):
        registry.resolve("some/model")


def test_fetching_while_offline_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelNotFoundError, match="HF_HUB_OFFLINE"):
        registry.fetch("some/model/file.gguf")


@pytest.mark.parametrize(
    ("failure", "error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), StorageError, "cannot be stored in the Hugging Face cache"),
        (ConnectionError("refused"), ModelNotFoundError, "the hub cannot be reached"),
        (RuntimeError("anything else"), ModelNotFoundError, "the hub cannot be reached"),
        (
            HfHubHTTPError("gone", response=cast("Any", SimpleNamespace(status_code=404, headers={}, request=None))),
            ModelNotFoundError,
            "status 404",
        ),
    ],
)
def test_a_failed_download_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, error: type[Exception], sentence: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(error, match=sentence):
        hub.download("some/model/file.gguf")


def test_fetching_a_name_that_no_hub_could_have_lists_the_remedies() -> None:
    with pytest.raises(ModelNotFoundError, match="No model answers to 'what is this'"):
        registry.fetch("what is this")


def test_the_catalogue_is_complete() -> None:
    assert [(entry.name, len(entry.parts), entry.size, entry.licence) for entry in CATALOG.values()] == [
        ("qwen2.5-coder-0.5b", 6, 491_400_064, "Apache-2.0"),
        ("qwen2.5-coder-1.5b", 22, 1_117_320_768, "Apache-2.0"),
        ("smollm2-135m", 1, 98_362_432, "Apache-2.0"),
    ]
    assert numbered("a{n}", "1", "b{n}/p{n:02d}", 2)[1].file == "b2/p02"
    assert DEFAULT_MODEL in CATALOG


def test_everything_lies_under_one_folder_when_a_user_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    folders = [paths.config_dir(), paths.cache_dir(), paths.state_dir(), paths.models_dir(), paths.converted_dir()]
    assert all(folder.is_relative_to(tmp_path) for folder in folders)
    assert len(set(folders)) == len(folders)
    monkeypatch.delenv("EAGLE_ASSIST_HOME")
    assert not any(folder.is_relative_to(tmp_path) for folder in [paths.config_dir(), paths.cache_dir()])


@pytest.mark.model
def test_the_default_model_verifies(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("monkeypatch").undo()
    del monkeypatch
    registry.resolve(DEFAULT_MODEL)
    [check] = registry.verify(DEFAULT_MODEL)
    assert check.ok
    assert check.size == CATALOG[DEFAULT_MODEL].size
