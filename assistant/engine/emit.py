"""From accepted tokens to what a caller sees: where a completion ends, and its text in whole characters."""

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from assistant.engine.types import FinishReason, GenerateOptions, Origin


class TokenBytes(Protocol):
    """What the engine needs of a tokenizer."""

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of an ordinary token; none for a special one."""
        ...

    def completions_of(self, forced: bytes) -> list[int]:
        """Ids of the tokens whose bytes begin with `forced`, or are a non-empty beginning of it."""
        ...


@dataclass(frozen=True, slots=True)
class Emission:
    """What of one step's tokens is part of the completion."""

    tokens: tuple[int, ...]
    origins: tuple[Origin, ...]
    text: str
    finish: FinishReason | None


class Emitter:
    """Takes accepted tokens one by one, so that every method ends at the same token and the same character."""

    def __init__(self, options: GenerateOptions, tokenizer: TokenBytes | None, forced: bytes = b"") -> None:
        assert tokenizer is not None or not (options.stop_strings or forced), "text needs a tokenizer"
        self.written = 0
        self._options = options
        self._tokenizer = tokenizer
        self._skip = len(forced)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def take(self, tokens: Sequence[int], origins: Iterable[Origin]) -> Emission:
        """The part of a step's tokens that still belongs to the completion."""
        kept: list[tuple[int, Origin]] = []
        text = ""
        finish = None
        for token, origin in zip(tokens, origins, strict=True):
            if token in self._options.stop_ids:
                finish = FinishReason.STOP
                break
            kept.append((token, origin))
            self.written += 1
            more, stopped = self._push(token)
            text += more
            if stopped:
                finish = FinishReason.STOP
                break
            if self.written >= self._options.max_tokens:
                finish = FinishReason.LENGTH
                break
        if finish is not None:
            text += self.flush()
        return Emission(tuple(t for t, _ in kept), tuple(o for _, o in kept), text, finish)

    def flush(self) -> str:
        """What was held back in case it began a stop string; nothing more comes.

        A character that the last token left unfinished is dropped: half of it is nothing that an editor could show.
        """
        text, self._held = self._held, ""
        self._decoder.reset()
        return text

    def _push(self, token: int) -> tuple[str, bool]:
        if self._tokenizer is None:
            return "", False
        data = self._tokenizer.token_bytes(token)
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._held += self._decoder.decode(data[skipped:])
        stops = [at for stop in self._options.stop_strings if (at := self._held.find(stop)) >= 0]
        if stops:
            text, self._held = self._held[: min(stops)], ""
            self._decoder.reset()
            return text, True
        keep = _longest_beginning(self._held, self._options.stop_strings)
        text, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return text, False


def _longest_beginning(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of `text` that a stop string begins with."""
    longest = 0
    for stop in stops:
        for size in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:size]):
                longest = size
                break
    return longest
