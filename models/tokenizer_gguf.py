"""Making a tokenizer from a GGUF's vocabulary; done once, then kept by `Tokenizer.save`."""

from typing import Any

from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Encoder

from assistant.errors import ArchitectureError, ModelCorruptError
from models.gguf_files import GgufFile
from models.special_tokens import NEVER_TEXT, is_plain
from models.tokenizer import Alphabet, Tokenizer, TokenizerFacts

_NORMAL, _USER, _UNUSED, _BYTE = 1, 4, 5, 6
"""GGUF's kinds of token; all others are control tokens"""

_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_MODERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DIGIT_WORDS = (r"\p{N}", _WORDS)
_SPLITS: dict[str, tuple[str, ...]] = {
    "default": (_WORDS,),
    "gpt-2": (_WORDS,),
    "qwen2": (_MODERN.replace("DIGITS", r"\p{N}"),),
    "llama-bpe": (_MODERN.replace("DIGITS", r"\p{N}{1,3}"),),
    "smollm": _DIGIT_WORDS,
    "starcoder": _DIGIT_WORDS,
    "refact": _DIGIT_WORDS,
    "command-r": _DIGIT_WORDS,
    "codeshell": _DIGIT_WORDS,
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}"),
}
"""how each of llama.cpp's pre-tokenizer names cuts text before merging"""


def from_gguf(file: GgufFile, name: str) -> Tokenizer:
    """The tokenizer of a GGUF file.

    Raises:
        ArchitectureError: its kind of vocabulary or its pre-tokenizer is unknown here.
        ModelCorruptError: the file holds no vocabulary.
    """
    texts: list[str] | None = file.metadata.get("tokenizer.ggml.tokens")
    if not texts:
        raise ModelCorruptError(f"{file.path} holds no vocabulary; use a complete GGUF file.")
    kinds = [int(kind) for kind in file.metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(texts))]
    words, plain, special = _sort_out(texts, kinds)
    model = file.metadata.get("tokenizer.ggml.model")
    alphabet: Alphabet
    if model == "gpt2":
        alphabet, encoder = "bytes", _bytes_encoder(file, words)
    elif model == "llama":
        scores = file.metadata.get("tokenizer.ggml.scores", range(0, -len(texts), -1))
        bytewise = {text for text, kind in zip(texts, kinds, strict=True) if kind == _BYTE}
        alphabet, encoder = "pieces", _pieces_encoder(words, scores, bytewise)
    else:
        raise ArchitectureError(
            f"{file.path} has a vocabulary of the kind {model!r}, unknown here; use the model's safetensors folder."
        )
    encoder.add_tokens([AddedToken(text, normalized=False) for text in plain])
    ends, start = _gguf_ends(file), _gguf_start(file, alphabet)
    return Tokenizer(TokenizerFacts(name, len(texts), alphabet, special, plain, ends, start), encoder)


def _sort_out(texts: list[str], kinds: list[int]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The encoder's words (plain added tokens too), the plain added tokens, and the special ones: text to id."""
    words: dict[str, int] = {}
    plain: dict[str, int] = {}
    special: dict[str, int] = {}
    for token, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
        added = kind == _USER and is_plain(text)
        if text not in NEVER_TEXT and (added or kind in {_NORMAL, _BYTE}):
            words[text] = token
            if added and "▁" not in text:
                plain[text] = token
        elif kind != _UNUSED:
            special[text] = token
    return words, plain, special


def _bytes_encoder(file: GgufFile, words: dict[str, int]) -> Encoder:
    kind = file.metadata.get("tokenizer.ggml.pre", "default")
    if kind not in _SPLITS:
        raise ArchitectureError(f"{file.path} cuts text by {kind!r}, unknown here; use the model's safetensors folder.")
    merges = [_pair(line) for line in file.metadata.get("tokenizer.ggml.merges", [])]
    known = [(left, right) for left, right in merges if left in words and right in words and left + right in words]
    encoder = Encoder(models.BPE(vocab=words, merges=known, ignore_merges=kind == "llama-bpe"))
    cuts = [pre_tokenizers.Split(Regex(cut), behavior="isolated") for cut in _SPLITS[kind]]
    encoder.pre_tokenizer = pre_tokenizers.Sequence(
        [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return encoder


def _pair(line: str) -> tuple[str, str]:
    left, _, right = line.partition(" ")
    return left, right


def _pieces_encoder(words: dict[str, int], scores: Any, bytewise: set[str]) -> Encoder:
    """Sentencepiece's BPE joins the neighbours whose union scores best: the same merges, listed by falling score."""
    merges: list[tuple[float, int, int, str, str]] = []
    for text, token in words.items():
        if text in bytewise:
            continue
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in words and right in words:
                merges.append((-float(scores[token]), words[left], words[right], left, right))
    merges.sort()
    encoder = Encoder(
        models.BPE(vocab=words, merges=[(left, right) for *_, left, right in merges], byte_fallback=True, fuse_unk=True)
    )
    encoder.normalizer = normalizers.Replace(" ", "▁")
    return encoder


def _gguf_ends(file: GgufFile) -> tuple[int, ...]:
    keys = ("eos_token_id", "eot_token_id", "eom_token_id")
    found = (file.metadata.get(f"tokenizer.ggml.{key}") for key in keys)
    return tuple(sorted({int(token) for token in found if token is not None}))


def _gguf_start(file: GgufFile, alphabet: Alphabet) -> int | None:
    # llama.cpp's defaults where the file says nothing: sentencepiece vocabularies and Llama 3 begin with a token.
    default = alphabet == "pieces" or file.metadata.get("tokenizer.ggml.pre") == "llama-bpe"
    token = file.metadata.get("tokenizer.ggml.bos_token_id")
    wanted = file.metadata.get("tokenizer.ggml.add_bos_token", default)
    return int(token) if token is not None and wanted else None
