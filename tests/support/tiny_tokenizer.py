"""A real byte-level tokenizer of a few hundred tokens with Qwen's special tokens, always the same."""

import functools

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Encoder

from models.tokenizer import Tokenizer, TokenizerFacts

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)
WORDS = (
    "return",
    " return",
    "def",
    " def",
    "self",
    " self",
    " =",
    "import",
    "    ",
    "   ",
    "\n\n",
    ":\n",
    "()",
    "ü",
    "print",
)
"""what merges build, from left to right"""
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@functools.cache
def tiny_encoder() -> Encoder:
    """The `tokenizers` object: 256 bytes, the words and their beginnings, no special tokens."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {letter: index for index, letter in enumerate(sorted(letters))}
    merges: list[tuple[str, str]] = []
    stand_in = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for word in WORDS:
        spelt = stand_in.pre_tokenize_str(word)[0][0]
        for size in range(2, len(spelt) + 1):
            if spelt[:size] not in vocabulary:
                vocabulary[spelt[:size]] = len(vocabulary)
                merges.append((spelt[: size - 1], spelt[size - 1]))
    encoder = Encoder(models.BPE(vocabulary, merges))
    split = pre_tokenizers.Split(Regex(_SPLIT), "isolated")
    encoder.pre_tokenizer = pre_tokenizers.Sequence([split, stand_in])
    encoder.decoder = decoders.ByteLevel()
    return encoder


@functools.cache
def tiny_tokenizer() -> Tokenizer:
    """The tokenizer as the program uses it; special tokens have the ids after the ordinary ones."""
    first = tiny_encoder().get_vocab_size()
    special = {text: first + index for index, text in enumerate(SPECIAL)}
    facts = TokenizerFacts("tiny", first + len(SPECIAL), "bytes", special, {}, (special["<|im_end|>"],))
    return Tokenizer(facts, tiny_encoder())


def tokenizer_json() -> str:
    """The content of a model folder's `tokenizer.json`, special tokens included."""
    encoder = Encoder.from_str(tiny_encoder().to_str())
    encoder.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    return str(encoder.to_str())
