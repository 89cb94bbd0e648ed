"""From a document and a cursor to the token ids that a target continues.

The window around the cursor is cut in characters before anything is tokenized, so a huge file costs as much as a small
one. It begins at a line's start and moves in strides: while one types, the prompt keeps its beginning, and with it the
rows that the cache holds.

Token healing: what was typed last is often a part of a token, and a model seldom goes on as it should from a token
that is cut in two. So tokens of the last word are taken off the prompt, and the engine makes the first new token spell
the same bytes and perhaps more (`Prompt.forced`). On a line of white space only, that is the whole indentation.
"""

import re
from dataclasses import dataclass

from assistant.engine.types import Prompt
from models.fim import FimFormat
from models.tokenizer import Tokenizer

_CHARS_PER_TOKEN = 4
"""source code has 3 to 4, so that the first cut is seldom too long by much"""
_RESERVE = 8
"""room for a family's fill-in-the-middle tokens"""
_HEALED_TOKENS = 4
"""hardly any token is spelt by more tokens than this when its last characters are missing"""
_TAIL = 128
"""characters before the cursor that healing looks at"""
_TYPED = re.compile(r"(?P<blank>[^\S\n]+)\Z|(?:[^\w\n]|_)?[^\W\d_]+\Z|\d\Z|[ ]?(?:[^\s\w]|_)+\Z")
"""the last word as pre-tokenizers cut it: white space; letters behind at most one other character; a digit; signs"""


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens around the cursor a target reads.

    Reading takes time. While one types the prefix is cached, but the suffix stands behind it in most families' prompts
    and is read anew with every key, so it is kept short.
    """

    prefix: int = 768
    suffix: int = 128

    def within(self, room: int) -> "Window":
        """This window, made smaller in proportion where a context leaves only `room` tokens for the prompt."""
        room = max(2, room - _RESERVE)
        if self.prefix + self.suffix <= room:
            return self
        suffix = room * self.suffix // (self.prefix + self.suffix)
        return Window(room - suffix, suffix)


DEFAULT_WINDOW = Window()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a target reads of other files, before the edited one: so typing leaves its rows as they are."""

    name: str
    """of the repository"""
    files: tuple[tuple[str, str], ...]
    """path and text, the most useful last"""
    path: str
    """of the edited file"""


def build_prompt(
    text: str,
    cursor: int,
    tokenizer: Tokenizer,
    fim: FimFormat | None,
    window: Window = DEFAULT_WINDOW,
    surroundings: Surroundings | None = None,
) -> Prompt:
    """The prompt for completing `text` at `cursor`.

    It is of the family's fill-in-the-middle form where there is one and text stands behind the cursor, else the plain
    prefix. Text is encoded as ordinary tokens alone, whatever it spells.

    Args:
        text: the document, with line feeds as line ends.
        cursor: an index into `text`, 0 to its length.
        tokenizer: the target's.
        fim: the target's family, None where it knows no fill-in-the-middle.
        window: bounds on the tokens taken from both sides.
        surroundings: other files, for families that know whole repositories.
    """
    assert 0 <= cursor <= len(text), "a cursor lies in its text"
    ids = _before(text, cursor, tokenizer, window.prefix)
    prefix, forced = heal(ids, text[max(0, cursor - _TAIL) : cursor], tokenizer)
    suffix = _after(text, cursor, tokenizer, window.suffix) if text[cursor:].strip() else []
    before = _repository(surroundings, tokenizer, fim)
    if fim is not None and suffix:
        prompt = fim.build(prefix, suffix, tokenizer, before)
        gap = fim.gap(prompt, tokenizer)
    else:
        prompt = [*_start(tokenizer, empty=not (before or prefix)), *before, *prefix]
        gap = None
    return Prompt(tuple(prompt), tuple(prefix), tuple(suffix), forced, gap)


def _repository(surroundings: Surroundings | None, tokenizer: Tokenizer, fim: FimFormat | None) -> list[int]:
    if surroundings is None or not surroundings.files or fim is None:
        return []
    files = [(path, tokenizer.encode(text)) for path, text in surroundings.files]
    return fim.repository(surroundings.name, files, surroundings.path, tokenizer)


def _before(text: str, cursor: int, tokenizer: Tokenizer, budget: int) -> list[int]:
    """At most `budget` tokens that end at the cursor, and at least half as many where the text has them."""
    stride = max(1, budget // 2)
    first = -(-max(0, cursor - budget * _CHARS_PER_TOKEN) // stride) * stride
    longer: list[int] = []
    for start in range(first, cursor, stride):
        ids = tokenizer.encode(text[_line_start(text, start, min(start + stride, cursor)) : cursor])
        if len(ids) <= budget and (len(ids) * 2 >= budget or not longer):
            return ids
        longer = longer if len(ids) <= budget else ids
    kept = longer[len(longer) - budget :] if longer else []
    while kept and _continues_character(tokenizer.token_bytes(kept[0])):
        del kept[0]
    return kept


def _line_start(text: str, start: int, end: int) -> int:
    """The first beginning of a line from `start` and before `end`, or `start` where no line begins there."""
    if start == 0:
        return 0
    found = text.find("\n", start - 1, end - 1)
    return start if found < 0 else found + 1


def _after(text: str, cursor: int, tokenizer: Tokenizer, budget: int) -> list[int]:
    """At most `budget` tokens that begin at the cursor; where they are cut, at a line's end if there is one."""
    end = cursor + budget * _CHARS_PER_TOKEN
    ids = tokenizer.encode(text[cursor:end])
    if len(ids) <= budget and end >= len(text):
        return ids
    kept = ids[:budget]
    for size in range(len(kept), len(kept) // 2, -1):
        if b"\n" in tokenizer.token_bytes(kept[size - 1]):
            return kept[:size]
    following = ids[len(kept) :]
    while following and kept and _continues_character(tokenizer.token_bytes(following[0])):
        following = [kept.pop()]
    return kept


def _continues_character(data: bytes) -> bool:
    return bool(data) and data[0] & 0xC0 == 0x80


def heal(ids: list[int], tail: str, tokenizer: Tokenizer) -> tuple[list[int], bytes]:
    """Split `ids` into those that stay and the bytes of the last word; nothing is healed after a line's end.

    Of a word no more is taken than one token can spell: more tokens would have to be guessed one by one, each at the
    cost of a forward, and the likeliest first token of a long text is often not a part of the best spelling.
    """
    typed = _TYPED.search(tail)
    if typed is None:
        return ids, b""
    size = len(typed[0].encode(errors="replace"))
    if typed["blank"] and tail[: typed.start()][-1:] in {"", "\n"}:
        return _take(ids, size, len(ids), tokenizer)
    for most in range(_HEALED_TOKENS, 1, -1):
        kept, forced = _take(ids, size, most, tokenizer)
        if any(tokenizer.token_bytes(token).startswith(forced) for token in tokenizer.completions_of(forced)):
            return kept, forced
    return _take(ids, size, 1, tokenizer)


def _take(ids: list[int], size: int, most: int, tokenizer: Tokenizer) -> tuple[list[int], bytes]:
    """Take tokens off the end until `size` bytes are taken, or `most` tokens."""
    kept, forced = list(ids), b""
    for _ in range(most):
        if not kept or len(forced) >= size:
            break
        forced = tokenizer.token_bytes(kept.pop()) + forced
    return kept, forced


def _start(tokenizer: Tokenizer, *, empty: bool) -> list[int]:
    """What a plain prompt begins with: the family's own token, or one that parts documents if nothing else is there."""
    if tokenizer.bos_id is not None:
        return [tokenizer.bos_id]
    if not empty:
        return []
    end = tokenizer.special("<|endoftext|>")
    return [min(tokenizer.eos_ids) if end is None else end]
