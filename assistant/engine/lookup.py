"""Where runs of tokens stood in a text, and what followed them there."""

from collections.abc import Sequence

LONGEST = 6
"""tokens of a match beyond which longer ones are not told apart"""
_OWN = tuple(range(1, LONGEST + 1))


class Lookup:
    """Where every n-gram of some token sequences was last followed by something.

    Sequences are searched in the order in which they were given, the last one first; it alone can grow.

    Args:
        texts: the sequences.
        sizes: the lengths n of matches, in rising order; fewer of them take less memory.
    """

    def __init__(self, *texts: Sequence[int], sizes: Sequence[int] = _OWN) -> None:
        self._sizes = tuple(sizes)
        self._texts: list[list[int]] = []
        self._last: dict[tuple[int, ...], tuple[int, int]] = {}
        for text in texts:
            self._texts.append([])
            self.extend(text)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append to the last text."""
        number = len(self._texts) - 1
        text = self._texts[number]
        for token in tokens:
            end = len(text)
            for size in self._sizes:
                if size > end:
                    break
                self._last[tuple(text[end - size :])] = (number, end)
            text.append(token)

    def find(self, tail: Sequence[int], count: int) -> tuple[list[int], int]:
        """What followed the longest, then most recent match of the end of `tail`: up to `count` tokens, match length.

        The last token of `tail` is the one that comes next in the last text. A continuation that runs into it goes on
        with itself, so a repetition is carried on.
        """
        for size in reversed(self._sizes):
            if size > len(tail):
                continue
            place = self._last.get(tuple(tail[len(tail) - size :]))
            if place is not None:
                return self._read(*place, tail[-1], count), size
        return [], 0

    def _read(self, number: int, start: int, latest: int, count: int) -> list[int]:
        text = self._texts[number]
        found = text[start : start + count]
        # Only the growing text can be a repetition still under way; another one simply ends.
        if number == len(self._texts) - 1 and len(found) < count:
            period = [*found, latest]
            found = [period[i % len(period)] for i in range(count)]
        return found


class Passages:
    """Another text, as it stands: matches in it are longer than one token, and it does not grow."""

    def __init__(self, text: Sequence[int]) -> None:
        # The last sequence is the one that can be a repetition under way; here there is none.
        self._lookup = Lookup(text, [], sizes=(2, 4, LONGEST))

    def find(self, tail: Sequence[int], count: int) -> tuple[list[int], int]:
        """As `Lookup.find`."""
        return self._lookup.find(tail, count)
