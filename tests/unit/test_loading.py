"""From a name to a running model: GGUF files and folders, the kept forms, draft heads, devices and precisions."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from assistant import paths
from assistant.engine.kv_cache import KVCache
from assistant.errors import ArchitectureError, HeadMismatchError, ModelCorruptError, ModelNotFoundError, UsageError
from models import checkpoints, converted, loading
from models.catalog import DEFAULT_MODEL
from models.decoder import LeanDecoder
from models.devices import choose_device, choose_precision
from models.hf import HFTarget
from models.target import Target
from tests.support import tiny
from tests.support.tiny_folder import write_head, write_model
from tests.support.tiny_gguf import write_gguf
from tests.support.tiny_tokenizer import tiny_tokenizer


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def logits(target: Target) -> Tensor:
    """What the target says to a few tokens."""
    ids = torch.arange(3, 12)
    return target.forward(ids, torch.arange(len(ids)), KVCache.of(target.spec)).logits


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_gguf_file_runs_as_its_tensors_do(tmp_path: Path, family: str) -> None:
    path = tmp_path / "m.gguf"
    state = write_gguf(path, family)
    loaded = loading.load(str(path), "float32")
    config = tiny.tiny_config(family, vocab_size=tiny_tokenizer().vocab_size)
    expected = LeanDecoder.from_state(config, state, name="m", precision="float32", device="cpu")
    torch.testing.assert_close(logits(loaded.target), logits(expected))
    assert loaded.target.spec.name == loaded.source.name == "m"
    assert loaded.tokenizer.decode(loaded.tokenizer.encode("def f(): return 1")) == "def f(): return 1"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_runs_the_same_whether_its_weights_are_in_shards_or_not(tmp_path: Path, shards: int) -> None:
    loaded = loading.load(str(write_model(tmp_path / "model", shards=shards)), "float32")
    expected = tiny.tiny_target("qwen2", vocab_size=tiny_tokenizer().vocab_size)
    torch.testing.assert_close(logits(loaded.target), logits(expected))
    assert loaded.tokenizer.special("<|im_end|>") in loaded.tokenizer.eos_ids


@pytest.mark.parametrize("precision", ["int8", "bfloat16"])
def test_the_second_start_reads_the_kept_form_and_gives_the_same_bits(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    path = str(tmp_path / "m.gguf")
    write_gguf(Path(path), "qwen2")
    first = loading.load(path, precision)
    monkeypatch.setattr(loading, "open_gguf", lambda _: pytest.fail("read the source again"))
    stages: list[str] = []
    second = loading.load(path, precision, progress=lambda stage, *_: stages.append(stage))
    assert torch.equal(logits(first.target), logits(second.target))
    assert second.tokenizer.facts == first.tokenizer.facts
    assert "convert" not in stages
    assert sorted(folder.name.split("-")[1] for folder in _kept(home)) == sorted(["text", precision])


def _kept(home: Path) -> list[Path]:
    return [folder for folder in (home / "cache" / "converted").iterdir() if not folder.name.startswith(".")]


def test_float32_is_made_anew_instead_of_kept(tmp_path: Path, home: Path) -> None:
    write_gguf(tmp_path / "m.gguf")
    loading.load(str(tmp_path / "m.gguf"), "float32")
    assert [folder.name.split("-")[1] for folder in _kept(home)] == ["text"]


def test_a_changed_source_is_converted_again(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(path)
    first = loading.load(str(path), "bfloat16")
    write_gguf(path, seed=5)
    second = loading.load(str(path), "bfloat16")
    assert not torch.equal(logits(first.target), logits(second.target))
    assert len([folder for folder in _kept(home) if "bfloat16" in folder.name]) == 2


def test_an_older_form_is_replaced(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gguf(tmp_path / "m.gguf")
    loading.load(str(tmp_path / "m.gguf"), "bfloat16")
    monkeypatch.setattr(converted, "form", lambda *_: "01234567")
    loading.load(str(tmp_path / "m.gguf"), "bfloat16")
    assert {folder.name.rpartition("-")[2] for folder in _kept(home)} == {"01234567"}


def test_the_form_of_kept_weights_covers_all_the_code_that_makes_them() -> None:
    """Whatever `models.decoder` imports decides what its weights look like."""
    program = "import sys, models.decoder; print(*(name for name in sys.modules if name.startswith('models.')))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    read: list[str] = []
    original = Path.read_text

    def record(path: Path, *arguments: str, **named: str) -> str:
        inner = path.relative_to(Path(converted.__file__).parent).with_suffix("")
        read.append(".".join(("models", *(part for part in inner.parts if part != "__init__"))))
        return original(path, *arguments, **named)

    converted.form.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", record)
        digits = converted.form("decoder")
    assert sorted(read) == sorted(run.stdout.split())
    assert digits == converted.form("decoder") != converted.form("tokenizer")
    assert len(digits) == 8


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_kept_form_is_made_again(tmp_path: Path, home: Path, name: str) -> None:
    write_gguf(tmp_path / "m.gguf")
    first = loading.load(str(tmp_path / "m.gguf"), "bfloat16")
    before = logits(first.target)
    [file] = (home / "cache" / "converted").glob(f"*/{name}")
    # A new file in its place: the first model still maps the old one.
    damaged = file.read_bytes()[: file.stat().st_size // 2]
    file.unlink()
    file.write_bytes(damaged)
    second = loading.load(str(tmp_path / "m.gguf"), "bfloat16")
    assert torch.equal(before, logits(second.target))
    assert second.tokenizer.encode("return") == first.tokenizer.encode("return")
    assert file.stat().st_size > len(damaged)


def test_a_read_only_cache_costs_time_and_nothing_else(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("assistant.files._temporary", refuse)
    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    write_gguf(tmp_path / "m.gguf")
    loaded = loading.load(str(tmp_path / "m.gguf"), "int8")
    assert logits(loaded.target).isfinite().all()
    assert _kept(home) == []
    assert caplog.text.count("the folder is read-only") == 2


def test_a_full_disk_costs_time_and_nothing_else(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    write_gguf(tmp_path / "m.gguf")
    loading.load(str(tmp_path / "m.gguf"), "int8")
    assert [folder.name for folder in _kept(home) if "int8" in folder.name] == []
    assert "are needed" in caplog.text


@pytest.mark.usefixtures("home")
def test_progress_counts_every_tensor(tmp_path: Path) -> None:
    state = write_gguf(tmp_path / "m.gguf")
    seen: list[tuple[str, int, int]] = []
    loading.load(str(tmp_path / "m.gguf"), "float32", progress=lambda *step: seen.append(step))
    assert [step for step in seen if step[0] == "convert"][-1] == ("convert", len(state), len(state))
    assert [stage for stage, done, total in seen if done == total] == ["tokenizer", "convert", "load"]


@pytest.mark.usefixtures("home")
def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelCorruptError, match=r"lacks 1 of its 3 shards, model-00002-of-00003\.safetensors first"):
        loading.load(str(folder), "float32")


@pytest.mark.usefixtures("home")
def test_damaged_folders_are_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", shards=2)
    shard = folder / "model-00001-of-00002.safetensors"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    _refused(folder, r"model-00001-of-00002\.safetensors is truncated or damaged")
    shard.write_bytes(whole)
    (folder / "model.safetensors.index.json").write_text("{")
    _refused(folder, r"index\.json is damaged")
    (folder / "model.safetensors.index.json").unlink()
    _refused(folder, r"holds neither model\.safetensors nor")
    (folder / "config.json").write_text("[]")
    _refused(folder, r"config\.json holds no JSON object")
    (folder / "config.json").write_text("{")
    _refused(folder, r"config\.json is missing or damaged")


def _refused(folder: Path, sentence: str) -> None:
    with pytest.raises(ModelCorruptError, match=sentence) as caught:
        loading.load(str(folder), "float32")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("home")
def test_tensors_that_do_not_fit_the_config_are_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"num_hidden_layers": 3}))
    _refused(folder, r"model\.layers\.2")
    (folder / "config.json").write_text(json.dumps(settings | {"intermediate_size": 40}))
    _refused(folder, "mlp")


@pytest.mark.usefixtures("home")
def test_a_head_is_fitted_to_its_target(tmp_path: Path) -> None:
    loaded = loading.load(str(write_model(tmp_path / "model")), "float32")
    head = loading.load_head(str(write_head(tmp_path / "head")), loaded.target)
    assert head.spec.hidden_size == loaded.target.spec.hidden_size
    assert head.spec.precision == "float32"
    assert head.spec.name == "head"
    assert loading.load_head(str(tmp_path / "head"), loaded.target, "bfloat16").spec.precision == "bfloat16"


@pytest.mark.usefixtures("home")
def test_heads_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    target = loading.load(str(write_model(tmp_path / "model")), "float32").target
    with pytest.raises(ModelNotFoundError, match=r"No draft head ships for model.*plain, ngram"):
        loading.load_head(None, target)
    with pytest.raises(ModelNotFoundError, match=r"No draft head answers to 'nothing': name a shipped one \(qwen"):
        loading.load_head("nothing", target)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelCorruptError, match=r"empty holds no config\.json"):
        loading.load_head(str(tmp_path / "empty"), target)
    with pytest.raises(HeadMismatchError):
        loading.load_head(str(write_head(tmp_path / "wide", hidden=64)), target)


def test_damaged_heads_are_refused(tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelCorruptError, match=r"model\.safetensors is truncated or damaged"):
        checkpoints.read_head(str(folder))
    weights.unlink()
    with pytest.raises(ModelCorruptError, match=r"holds neither model\.safetensors nor pytorch_model\.bin"):
        checkpoints.read_head(str(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelCorruptError, match=r"config\.json is damaged"):
        checkpoints.read_head(str(folder))


class Bomb:
    """Something whose unpickling runs a command."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("exploded",)


def test_a_pickled_head_is_read_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_head(tmp_path / "head")
    (folder / "model.safetensors").unlink()
    torch.save({"fc.weight": torch.ones(2, 4)}, folder / "pytorch_model.bin")
    head = checkpoints.read_head(str(folder))
    assert torch.equal(head.state["fc.weight"], torch.ones(2, 4))
    for content in ({"fc.weight": Bomb()}, {"fc.weight": "text"}, [1]):
        torch.save(content, folder / "pytorch_model.bin")
        with pytest.raises(ModelCorruptError, match=r"pytorch_model\.bin"):
            checkpoints.read_head(str(folder))
    assert not (tmp_path / "exploded").exists()


def test_shipped_heads_name_their_targets() -> None:
    assert checkpoints.shipped_heads()["qwen2.5-coder-0.5b-eagle2"] == DEFAULT_MODEL
    name = checkpoints.head_for(DEFAULT_MODEL)
    assert name is not None
    head = checkpoints.read_head(name)
    assert head.target == DEFAULT_MODEL
    assert head.state["fc.weight"].shape == (896, 1792)
    assert (head.path / "README.md").is_file()
    assert checkpoints.head_for("smollm2-135m") is None


def test_of_several_heads_for_a_target_the_last_by_name_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SHIPPED", tmp_path)
    for name, target in [("a", "x"), ("c", "x"), ("b", "x"), ("d", "y"), ("e", None)]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"target": target}))
    assert checkpoints.head_for("x") == "c"
    assert checkpoints.head_for("z") is None


def test_precisions_are_chosen_by_device() -> None:
    cpu, cuda, mps = torch.device("cpu"), torch.device("cuda:0"), torch.device("mps")
    fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
    assert choose_precision("auto", cpu) == ("int8" if fbgemm else "float32")
    assert choose_precision("auto", cpu, lean=False) == "float32"
    assert choose_precision("auto", cuda) == "bfloat16"
    assert choose_precision("auto", mps) == "float16"
    assert choose_precision("float32", cuda) == "float32"
    with pytest.raises(UsageError, match="unknown precision 'int4'"):
        choose_precision("int4", cpu)
    with pytest.raises(UsageError, match="no int8"):
        choose_precision("int8", cpu, lean=False)


def test_devices_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    for unknown in ["tpu", "", "cpu:x", "meta"]:
        with pytest.raises(UsageError, match="unknown device"):
            choose_device(unknown)
    with pytest.raises(UsageError, match="0 CUDA devices"):
        choose_device("cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError, match="mps is not on this machine"):
        choose_device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:0")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(UsageError, match="2 CUDA devices"):
        choose_device("cuda:2")


@pytest.mark.usefixtures("home")
def test_int8_on_a_gpu_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    write_gguf(tmp_path / "m.gguf")
    with pytest.raises(UsageError, match="int8 runs on the CPU"):
        loading.load(str(tmp_path / "m.gguf"), "int8", "cuda")
    assert not paths.converted_dir().exists()


@pytest.mark.usefixtures("home")
def test_the_wide_path_says_what_the_lean_one_says(tmp_path: Path) -> None:
    folder = str(write_model(tmp_path / "model"))
    write_gguf(tmp_path / "m.gguf", "qwen2")
    for source in (folder, str(tmp_path / "m.gguf")):
        lean, wide = loading.load(source, "float32"), loading.load(source, "float32", wide=True)
        assert isinstance(wide.target, HFTarget)
        torch.testing.assert_close(logits(wide.target), logits(lean.target), atol=1e-4, rtol=1e-4)
        assert wide.target.spec.name == lean.target.spec.name
    assert loading.load(folder, wide=True).target.spec.precision == "float32"
    with pytest.raises(UsageError, match="no int8"):
        loading.load(folder, "int8", wide=True)


@pytest.mark.usefixtures("home")
def test_a_family_that_only_transformers_knows_takes_the_wide_path(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = write_model(tmp_path / "model")
    size = tiny_tokenizer().vocab_size
    GPT2LMHeadModel(GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=4, n_positions=64)).save_pretrained(folder)
    loaded = loading.load(str(folder))
    assert isinstance(loaded.target, HFTarget)
    assert logits(loaded.target).shape == (9, size)


@pytest.mark.usefixtures("home")
def test_a_family_that_nobody_knows_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"model_type": "martian"}))
    with pytest.raises(ArchitectureError, match="martian") as caught:
        loading.load(str(folder))
    assert "\n" not in str(caught.value)


def test_a_folder_in_half_precision_is_read(tmp_path: Path, home: Path) -> None:
    folder = write_model(tmp_path / "model")
    state = tiny.tiny_state(tiny.tiny_config("qwen2", vocab_size=tiny_tokenizer().vocab_size))
    save_file({name: tensor.half() for name, tensor in state.items()}, folder / "model.safetensors")
    loaded = loading.load(str(folder), "float32")
    expected = tiny.tiny_target("qwen2", vocab_size=tiny_tokenizer().vocab_size)
    torch.testing.assert_close(logits(loaded.target), logits(expected), atol=0.05, rtol=0.05)
    assert home.is_dir()


@pytest.mark.model
def test_the_default_model_writes_sensible_code_and_its_head_fits() -> None:
    loaded = loading.load(DEFAULT_MODEL)
    cache = KVCache.of(loaded.target.spec)
    ids = loaded.tokenizer.encode("def fibonacci(n):\n    if n <= 1:\n        return n\n    return fibonacci")
    written: list[int] = []
    for _ in range(8):
        positions = torch.arange(cache.length, cache.length + len(ids))
        forward = loaded.target.forward(torch.tensor(ids), positions, cache, last_only=True)
        ids = [int(forward.logits[-1].argmax())]
        written += ids
    text = loaded.tokenizer.decode(written).replace(" ", "")
    assert text.startswith("(n-1)+")
    head = loading.load_head(None, loaded.target)
    assert head.spec.hidden_size == loaded.target.spec.hidden_size
    assert head.draft_vocab is not None
    assert len(head.draft_vocab) == 16384
