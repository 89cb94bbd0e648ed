"""Text to token ids and back, exactly, for source files.

Ordinary text never becomes a special token here: a file that contains `<|fim_middle|>` is encoded as those characters.
The encoder holds no special tokens at all; prompts put them in by id (`models.fim`). No normalisation is applied, so
that `decode(encode(text)) == text` for every vocabulary that has all bytes. (SmolLM2's lacks some control characters,
which are left out.)
"""

import codecs
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from assistant.errors import ModelCorruptError
from models.special_tokens import STOP_TEXTS

if TYPE_CHECKING:
    import tokenizers

Alphabet = Literal["bytes", "pieces"]
"""`bytes`: GPT-2's printable stand-ins for the 256 bytes; `pieces`: sentencepiece's, `▁` for a space and `<0xNN>`"""

_CONFIG, _ENCODER = "text.json", "tokenizer.json"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "▁"


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What a tokenizer knows besides its encoder."""

    name: str
    vocab_size: int
    alphabet: Alphabet
    special: dict[str, int]
    """every token that text never becomes: its text and id"""
    plain_added: dict[str, int]
    """added tokens whose text is itself: runs of white space and the like"""
    eos: tuple[int, ...] = ()
    """what the model's own files call the end"""
    bos: int | None = None
    """the token that every prompt of this model starts with"""


class Tokenizer:
    """One model's vocabulary.

    Attributes:
        name: the model's name.
        vocab_size: V, the number of rows of the model's vocabulary that the tokenizer knows.
        bos_id: the token that every prompt of this model starts with, or None. `encode` never adds it.
        eos_ids: everything that ends a completion: the model's own ends and its family's fill-in-the-middle, file and
            message tokens.
    """

    def __init__(self, facts: TokenizerFacts, encoder: "tokenizers.Tokenizer") -> None:
        self.facts = facts
        self.name = facts.name
        self.vocab_size = facts.vocab_size
        self.bos_id = facts.bos
        self.eos_ids = frozenset(facts.eos) | {facts.special[text] for text in STOP_TEXTS & facts.special.keys()}
        self._encoder = encoder
        self._special_ids = frozenset(facts.special.values())
        self._plain = {token: text.encode() for text, token in facts.plain_added.items()}
        self._known: dict[int, bytes] = {}

    def encode(self, text: str) -> list[int]:
        """Token ids of ordinary text; lone surrogates become U+FFFD."""
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if self.facts.alphabet == "pieces" and _SPACE in text:
            return self._encode_around_marks(text)
        return list(self._encoder.encode(text, add_special_tokens=False).ids)

    def _encode_around_marks(self, text: str) -> list[int]:
        # A vocabulary of pieces writes a space as "▁", so the character itself can only be spelled byte by byte.
        spelled = [self._encoder.token_to_id(f"<0x{byte:02X}>") for byte in _SPACE.encode()]
        mark = [token for token in spelled if token is not None]
        first, *others = [self._encoder.encode(part, add_special_tokens=False).ids for part in text.split(_SPACE)]
        return [*first, *(token for part in others for token in (*mark, *part))]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids` without special tokens; bytes that are no UTF-8 become U+FFFD."""
        return self.join(ids).decode("utf-8", "replace")

    def join(self, ids: Iterable[int]) -> bytes:
        """The exact bytes of `ids`, without special tokens."""
        return b"".join(map(self.token_bytes, ids))

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of one token; b"" for special tokens and for ids that the vocabulary does not use."""
        known = self._known.get(token)
        if known is None:
            known = self._known[token] = self._spell(token)
        return known

    def _spell(self, token: int) -> bytes:
        if token in self._special_ids or token < 0:
            return b""
        if token in self._plain:
            return self._plain[token]
        piece = self._encoder.id_to_token(token)
        if piece is None:
            return b""
        if self.facts.alphabet == "bytes":
            return piece.translate(_TO_BYTES).encode("latin-1", "replace")
        byte = _BYTE_PIECE.fullmatch(piece)
        return bytes([int(byte[1], 16)]) if byte else piece.replace(_SPACE, " ").encode()

    def special(self, text: str) -> int | None:
        """The id of the special token with this text, or None."""
        return self.facts.special.get(text)

    def stream(self) -> "TextStream":
        """A decoder that takes one token at a time."""
        return TextStream(self)

    def completions_of(self, forced: bytes) -> list[int]:
        """Token healing: the ids that may come next when the text must begin with `forced`, sorted.

        They are the tokens whose bytes extend `forced` or equal it, and those that are a non-empty prefix of it.
        """
        if not forced:
            return sorted(token for _, token in self._by_bytes)
        shorter = {forced[:size] for size in range(1, len(forced))}
        table = self._by_bytes
        found = []
        for text in shorter:
            index = bisect_left(table, (text, -1))
            while index < len(table) and table[index][0] == text:
                found.append(table[index][1])
                index += 1
        index = bisect_left(table, (forced, -1))
        while index < len(table) and table[index][0].startswith(forced):
            found.append(table[index][1])
            index += 1
        return sorted(found)

    @cached_property
    def _by_bytes(self) -> list[tuple[bytes, int]]:
        return sorted((text, token) for token in range(self.vocab_size) if (text := self.token_bytes(token)))

    def save(self, folder: Path) -> None:
        """Write two files into `folder`, from which `load` makes the same tokenizer."""
        facts = self.facts
        record = {name: getattr(facts, name) for name in TokenizerFacts.__slots__}
        (folder / _CONFIG).write_text(json.dumps(record), encoding="utf-8")
        (folder / _ENCODER).write_text(self._encoder.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            ModelCorruptError: a file is missing or damaged.
        """
        import tokenizers

        try:
            record = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            facts = TokenizerFacts(**{**record, "eos": tuple(record["eos"])})
            encoder = tokenizers.Tokenizer.from_file(str(folder / _ENCODER))
        except Exception as error:  # `tokenizers` raises bare Exceptions
            raise ModelCorruptError(
                f"the tokenizer in {folder} is damaged; delete that folder and it is made again."
            ) from error
        return cls(facts, encoder)


class TextStream:
    """Tokens in, text out, never half a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The characters that this token completes."""
        return self._decoder.decode(self._tokenizer.token_bytes(token))

    def flush(self) -> str:
        """What an unfinished character leaves: U+FFFD or nothing."""
        return self._decoder.decode(b"", final=True)


def _byte_alphabet() -> dict[int, int]:
    """GPT-2's table from character to byte: printable Latin-1 stands for itself, U+0100 and on for the other bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {byte: byte for byte in printable} | {256 + index: byte for index, byte in enumerate(others)}


_TO_BYTES = _byte_alphabet()
