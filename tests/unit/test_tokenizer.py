"""Text to ids and back, exactly; token healing; streams; making tokenizers from GGUF files and folders."""

import json
from pathlib import Path
from typing import Any

import pytest
from gguf import TokenType
from hypothesis import given
from hypothesis import strategies as st

from assistant.errors import ArchitectureError, ModelCorruptError
from models import loading, registry, tokenizer_folder, tokenizer_gguf
from models.catalog import DEFAULT_MODEL
from models.gguf_files import open_gguf
from models.tokenizer import Tokenizer
from tests.support.tiny_gguf import write_gguf, write_vocabulary
from tests.support.tiny_tokenizer import SPECIAL, tiny_tokenizer, tokenizer_json

NASTY = (
    "def f(x):\r\n\treturn x  # é😀\u2028\u0301\n\n\n    ",
    "<|fim_middle|><|endoftext|> <|im_start|>",
    "▁▁ ▁<0x0A>▁<PRE> [PREFIX] <s></s><unk>",
    "",
    " ",
    "\n",
    "\r",
    "\x00\x01\x7f\x80",
    " " * 300,
    "日本語、中文、한국어 العربية 👨‍👩‍👧‍👦",
)


def pieces_tokenizer(folder: Path) -> Tokenizer:
    """A sentencepiece-style vocabulary in the manner of CodeLlama."""
    letters = sorted({*"abcdefghijklmnopqrstuvwxyz(){}:=_\n▁"})
    words = ["re", "tu", "rn", "turn", "return", "▁return", "▁▁", "▁▁▁▁", "de", "def", "▁def", "▁d", "▁r"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words, *letters]
    kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.BYTE] * 256
    kinds += [TokenType.NORMAL] * (len(words) + len(letters))
    scores = [0.0] * 259 + [-float(index) for index in range(len(words) + len(letters))]
    tokens += ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>", "\n\n", "<mask>", "<table>"]
    kinds += [TokenType.NORMAL] * 4 + [TokenType.USER_DEFINED] * 3
    scores += [0.0] * 7
    path = folder / "pieces.gguf"
    write_vocabulary(path, tokens=tokens, kinds=kinds, model="llama", scores=scores, bos=1)
    return tokenizer_gguf.from_gguf(open_gguf(path), "pieces")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return pieces_tokenizer(tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="module")
def from_gguf(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("bytes") / "m.gguf"
    write_gguf(path)
    return tokenizer_gguf.from_gguf(open_gguf(path), "tiny")


@pytest.fixture(scope="module", params=["bytes", "pieces"])
def either(request: pytest.FixtureRequest, from_gguf: Tokenizer, pieces: Tokenizer) -> Tokenizer:
    return from_gguf if request.param == "bytes" else pieces


@pytest.mark.parametrize("text", NASTY)
def test_text_comes_back_exactly(either: Tokenizer, text: str) -> None:
    assert either.decode(either.encode(text)) == text


@given(text=st.text(max_size=60))
def test_any_text_comes_back_exactly(either: Tokenizer, text: str) -> None:
    ids = either.encode(text)
    assert either.decode(ids) == text
    assert either.join(ids) == text.encode()
    stream = either.stream()
    assert "".join(stream.push(token) for token in ids) + stream.flush() == text


@given(text=st.lists(st.sampled_from([*SPECIAL, "▁<PRE>", "</s>", "<s>", " ", "x", "\n"])).map("".join))
def test_text_never_becomes_a_special_token(either: Tokenizer, text: str) -> None:
    special = {*either.facts.special.values()}
    assert special.isdisjoint(either.encode(text))


def test_lone_surrogates_become_replacement_characters(either: Tokenizer) -> None:
    assert either.decode(either.encode("a\ud800b")) == "a\ufffdb"


def test_special_tokens_are_known_by_their_text_and_have_no_bytes(from_gguf: Tokenizer) -> None:
    for text in SPECIAL:
        token = from_gguf.special(text)
        assert token == tiny_tokenizer().special(text)
        assert token is not None
        assert from_gguf.token_bytes(token) == b""
        assert token in from_gguf.eos_ids
    assert from_gguf.special("return") is None
    assert from_gguf.decode([*from_gguf.encode("a"), *from_gguf.eos_ids, *from_gguf.encode("b")]) == "ab"


def test_ids_outside_the_vocabulary_have_no_bytes(either: Tokenizer) -> None:
    assert either.token_bytes(10_000_000) == b""
    assert either.token_bytes(-1) == b""


def test_pieces_merge_by_score_and_marks_stay_out(pieces: Tokenizer) -> None:
    assert [pieces.token_bytes(token) for token in pieces.encode(" return")] == [b" return"]
    assert [pieces.token_bytes(token) for token in pieces.encode("    d")] == [b"    ", b"d"]
    assert [pieces.token_bytes(token) for token in pieces.encode("a\n\nb<table>")] == [b"a", b"\n\n", b"b", b"<table>"]
    assert pieces.special("▁<PRE>") is not None
    assert pieces.special("<mask>") is not None
    assert pieces.special("<table>") is None
    assert pieces.bos_id == 1


def test_a_stream_holds_back_half_characters(from_gguf: Tokenizer) -> None:
    ids = from_gguf.encode("é😀")
    stream = from_gguf.stream()
    pushed = [stream.push(token) for token in ids]
    assert [text for text in pushed if text] == ["é", "😀"]
    stream.push(ids[0])
    assert stream.flush() == "\ufffd"


@given(forced=st.sampled_from([b"retu", b"r", b" ", b"    ", b"\n", b"\xc3", "ü".encode(), b"zzz", b" retur"]))
def test_healing_offers_every_token_that_fits_and_no_other(either: Tokenizer, forced: bytes) -> None:
    fits = []
    for token in range(either.vocab_size):
        text = either.token_bytes(token)
        if text and (text.startswith(forced) or forced.startswith(text)):
            fits.append(token)
    assert either.completions_of(forced) == fits
    assert fits


def test_healing_without_forced_bytes_offers_every_ordinary_token(from_gguf: Tokenizer) -> None:
    assert len(from_gguf.completions_of(b"")) == from_gguf.vocab_size - len(SPECIAL)


def test_a_saved_tokenizer_is_the_same(either: Tokenizer, tmp_path: Path) -> None:
    either.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.facts == either.facts
    assert loaded.eos_ids == either.eos_ids
    for text in NASTY:
        assert loaded.encode(text) == either.encode(text)


def test_a_damaged_saved_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelCorruptError, match="made again"):
        Tokenizer.load(tmp_path)


def test_a_folder_gives_the_same_ids_as_the_gguf(from_gguf: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(tokenizer_json())
    folder = tokenizer_folder.from_folder(tmp_path, "tiny")
    assert folder.vocab_size == from_gguf.vocab_size
    assert folder.facts.special == from_gguf.facts.special
    for text in NASTY:
        assert folder.encode(text) == from_gguf.encode(text)


def write_folder(folder: Path, **changes: Any) -> Path:
    """A tokenizer.json in the manner of CodeLlama's: a prefix space, NFC, template, merges by pieces."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    for word in ["▁", "a", "b", "ab", "▁ab"]:
        vocab[word] = len(vocab)
    special = [{"id": 0, "content": "<unk>"}, {"id": 1, "content": "<s>"}, {"id": 2, "content": "</s>"}]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [flags | item | {"special": True} for item in special]
    added.append(flags | {"id": len(vocab), "content": "▁<PRE>", "special": False})
    added.append(flags | {"id": len(vocab) + 1, "content": "\n\n", "special": False})
    steps = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [["a", "b"], ["▁", "ab"]],
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(document | changes))
    settings = {"tokenizer_class": "CodeLlamaTokenizer", "bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    return folder


def test_a_folder_of_pieces_keeps_its_text_and_knows_its_ends(tmp_path: Path) -> None:
    tokenizer = tokenizer_folder.from_folder(write_folder(tmp_path), "pieces")
    for text in NASTY:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode("ab ab\n\n")] == [b"ab", b" ab", b"\n\n"]
    assert tokenizer.bos_id == 1
    assert {2, 7, tokenizer.special("▁<PRE>")} <= tokenizer.eos_ids


def test_a_folder_without_a_byte_pair_vocabulary_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, model={"type": "Unigram", "vocab": []})
    with pytest.raises(ArchitectureError, match="Unigram"):
        tokenizer_folder.from_folder(tmp_path, "x")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": {"type": "BPE"}}'])
def test_a_damaged_tokenizer_json_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelCorruptError, match=r"tokenizer\.json is damaged"):
        tokenizer_folder.from_folder(tmp_path, "x")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelCorruptError, match=r"holds no tokenizer\.json"):
        tokenizer_folder.from_folder(tmp_path, "x")


def test_an_unknown_way_of_cutting_text_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", pre="martian")
    with pytest.raises(ArchitectureError, match="'martian'"):
        tokenizer_gguf.from_gguf(open_gguf(tmp_path / "m.gguf"), "x")


def test_an_unknown_kind_of_vocabulary_is_refused(tmp_path: Path) -> None:
    write_vocabulary(tmp_path / "m.gguf", tokens=["a"], kinds=[TokenType.NORMAL], model="bert")
    with pytest.raises(ArchitectureError, match="'bert'"):
        tokenizer_gguf.from_gguf(open_gguf(tmp_path / "m.gguf"), "x")


def test_a_file_without_a_vocabulary_is_refused(tmp_path: Path) -> None:
    write_vocabulary(tmp_path / "m.gguf", tokens=["a"], kinds=[TokenType.NORMAL], model="gpt2")
    file = open_gguf(tmp_path / "m.gguf")
    del file.metadata["tokenizer.ggml.tokens"]
    with pytest.raises(ModelCorruptError, match="no vocabulary"):
        tokenizer_gguf.from_gguf(file, "x")


MIXED = (
    "\tdef näme(x):\r\n        return x[\"été\"] + 1234.5e-6  # 日本語 😀👩\u200d💻\n\n\n    don't we'LL  \n"
    "<p class='a'>½ \ufb01\u00a0\u3000</p>\x00"
)
"""tabs, CRLF, digits, contractions, several scripts, emoji, odd spaces"""
# fmt: off
MIXED_IDS = [
    7452, 43117, 2660, 2075, 5783, 286, 470, 856, 1183, 38783, 1341, 488, 220, 16, 17, 18, 19, 13, 20, 68, 12, 21, 220,
    671, 75402, 21894, 102819, 90316, 145233, 378, 235, 145851, 1406, 262, 1513, 944, 582, 6, 4086, 2303, 7926, 536,
    1131, 64, 6270, 26062, 32495, 70731, 4102, 22441, 522, 79, 29, 188,
]
"""what transformers makes of it with the default model's vocabulary"""
# fmt: on


@pytest.mark.model
def test_the_default_model_encodes_a_mixed_text_as_transformers_does() -> None:
    tokenizer = loading.load_tokenizer(registry.resolve(DEFAULT_MODEL))
    assert tokenizer.encode(MIXED) == MIXED_IDS
    assert tokenizer.decode(MIXED_IDS) == MIXED


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_default_model_encodes_all_our_files_as_transformers_does() -> None:
    from transformers import AutoTokenizer

    source = registry.resolve(DEFAULT_MODEL)
    mine = loading.load_tokenizer(source)
    reference = AutoTokenizer.from_pretrained(source.path.parent, gguf_file=source.path.name)
    here = Path(__file__).parents[2]
    files = [path for pattern in ("**/*.py", "*.md", "*.toml", "docs/**/*.md") for path in here.glob(pattern)]
    texts = [text for path in files if "<|" not in (text := path.read_bytes().decode())]
    assert len(texts) > 50
    for text in [*texts, MIXED]:
        ids = mine.encode(text)
        assert ids == reference.encode(text, add_special_tokens=False)
        assert mine.decode(ids) == text


@pytest.mark.model
def test_the_default_models_own_marks_in_a_file_are_plain_characters() -> None:
    tokenizer = loading.load_tokenizer(registry.resolve(DEFAULT_MODEL))
    text = "".join(tokenizer.facts.special)
    ids = tokenizer.encode(text)
    assert {*tokenizer.facts.special.values()}.isdisjoint(ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer.special("<|fim_middle|>") == 151660
    assert {151643, 151644, 151645, 151659, 151660, 151661, 151662, 151663, 151664} == tokenizer.eos_ids
