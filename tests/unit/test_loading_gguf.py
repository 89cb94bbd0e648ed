"""GGUF files: header, block formats, Hugging Face's names and config."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, quants

from assistant.errors import ArchitectureError, ModelCorruptError
from models.decoder import DecoderConfig
from models.gguf_files import open_gguf
from models.gguf_weights import GgufState, hf_config
from tests.support.tiny import tiny_config
from tests.support.tiny_gguf import write_gguf, write_single_tensor
from tests.support.tiny_tokenizer import tiny_tokenizer


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_tensors_come_back_under_hugging_faces_names_with_the_rotary_order_restored(
    tmp_path: Path, family: str
) -> None:
    written = write_gguf(tmp_path / "m.gguf", family)
    state = GgufState(open_gguf(tmp_path / "m.gguf"))
    assert set(state) == set(written)
    assert len(state) == len(written)
    for name, tensor in written.items():
        assert torch.equal(state[name], tensor), name


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_the_shape_equals_the_one_in_a_config_json(tmp_path: Path, family: str, tied: bool) -> None:  # noqa: FBT001
    write_gguf(tmp_path / "m.gguf", family, tied=tied)
    config = DecoderConfig.from_hf(hf_config(open_gguf(tmp_path / "m.gguf")))
    wanted = tiny_config(family, vocab_size=tiny_tokenizer().vocab_size, tie_word_embeddings=tied)
    # GGUF keeps the epsilon in float32.
    assert config.rms_norm_eps == pytest.approx(wanted.rms_norm_eps)
    assert {**_fields(config), "rms_norm_eps": 0} == {**_fields(wanted), "rms_norm_eps": 0}


def _fields(config: DecoderConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in DecoderConfig.__slots__}


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16", "F32"])
def test_every_block_format_gives_what_the_gguf_package_gives(tmp_path: Path, kind: str) -> None:
    values = np.random.default_rng(0).standard_normal((5000, 64)).astype(np.float32)
    format_ = GGMLQuantizationType[kind]
    write_single_tensor(tmp_path / "t.gguf", values, format_)
    [entry] = GGUFReader(tmp_path / "t.gguf").tensors
    found = open_gguf(tmp_path / "t.gguf").tensor("token_embd.weight")
    assert np.array_equal(found, quants.dequantize(entry.data, format_))


def test_yarn_and_linear_scaling_are_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(
        path, rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=256.0
    )
    assert hf_config(open_gguf(path))["rope_scaling"] == {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 256,
    }
    write_gguf(path, rope__scaling__type="linear", rope__scaling__factor=2.0)
    assert hf_config(open_gguf(path))["rope_scaling"] == {"rope_type": "linear", "factor": 2.0}


def test_llama_3_scaling_is_recognised_in_the_factors_that_it_made(tmp_path: Path) -> None:
    _write_rope_freqs(tmp_path / "m.gguf", _llama3_factors())
    scaling = hf_config(open_gguf(tmp_path / "m.gguf"))["rope_scaling"]
    assert scaling == {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def test_other_rotary_factors_are_refused(tmp_path: Path) -> None:
    _write_rope_freqs(tmp_path / "m.gguf", np.linspace(1, 8, 32, dtype=np.float32))
    with pytest.raises(ArchitectureError, match="rotary positions"):
        hf_config(open_gguf(tmp_path / "m.gguf"))


def _llama3_factors() -> np.ndarray[Any, Any]:
    """The rule as Llama 3.1's release states it, wavelength by wavelength."""
    factors = []
    for index in range(32):
        wavelength = 2 * np.pi * 500000.0 ** (2 * index / 64)
        smooth = (8192 / wavelength - 1) / (4 - 1)
        if wavelength < 8192 / 4:
            factors.append(1.0)
        elif wavelength > 8192:
            factors.append(8.0)
        else:
            factors.append(1 / ((1 - smooth) / 8 + smooth))
    return np.array(factors, np.float32)


def _write_rope_freqs(path: Path, factors: np.ndarray[Any, Any]) -> None:
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(131072)
    writer.add_embedding_length(128)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tensor("token_embd.weight", np.zeros((4, 128), np.float32))
    writer.add_tensor("rope_freqs.weight", factors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_family_that_the_lean_forward_does_not_run_is_named(tmp_path: Path) -> None:
    write_single_tensor(tmp_path / "t.gguf", np.zeros((1, 32), np.float32), GGMLQuantizationType.F32)
    path = tmp_path / "m.gguf"
    path.write_bytes((tmp_path / "t.gguf").read_bytes().replace(b"llama", b"bloom"))
    with pytest.raises(ArchitectureError, match=r"m\.gguf is of the family 'bloom'"):
        hf_config(open_gguf(path))


def test_a_mixture_of_experts_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", expert_count=4.0)
    with pytest.raises(ArchitectureError, match="mixture of experts"):
        hf_config(open_gguf(tmp_path / "m.gguf"))


def test_a_missing_value_is_a_damaged_file(tmp_path: Path) -> None:
    write_single_tensor(tmp_path / "t.gguf", np.zeros((1, 32), np.float32), GGMLQuantizationType.F32)
    with pytest.raises(ModelCorruptError, match=r"t\.gguf lacks values"):
        hf_config(open_gguf(tmp_path / "t.gguf"))


def test_a_file_cut_anywhere_is_refused_in_one_sentence(tmp_path: Path) -> None:
    write_gguf(tmp_path / "whole.gguf")
    data = (tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for length in [0, 3, 4, 7, 20, 30, 100, 1000, 5000, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ModelCorruptError, match=r"cut\.gguf .*\.$") as caught:
            open_gguf(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("position", [4, 8, 16, 24, 52, 56])
def test_a_damaged_header_is_refused(tmp_path: Path, position: int) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(path)
    data = bytearray(path.read_bytes())
    data[position : position + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    with pytest.raises(ModelCorruptError, match=r"m\.gguf"):
        open_gguf(path)


def test_a_format_that_nobody_can_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_single_tensor(tmp_path / "t.gguf", np.zeros((4, 32), np.float32), GGMLQuantizationType.Q4_0)

    def refuse(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(quants, "dequantize", refuse)
    with pytest.raises(ModelCorruptError, match=r"t\.gguf stores token_embd\.weight in a format"):
        open_gguf(tmp_path / "t.gguf").tensor("token_embd.weight")
