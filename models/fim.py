"""Fill-in-the-middle prompts, built from token ids.

A family is recognised by the special tokens that a vocabulary has; what they mean is in the families' own papers and
model cards. Text reaches these functions as ids of ordinary text, so nothing in a file can pass for a marker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from models.tokenizer import Tokenizer

Order = Literal["psm", "spm"]
"""prefix, suffix, middle; or the suffix first, which keeps a cache of it alive while one types at the prefix's end"""


@dataclass(frozen=True, slots=True)
class FimFormat:
    """How a family of models is asked for the text between two others."""

    family: str
    order: Order
    prefix: str
    """the special token before the prefix"""
    suffix: str
    """the special token before the suffix"""
    middle: str | None = None
    """the special token after which the model writes; None where the prefix itself comes last"""
    start: str | None = None
    """the special token that opens every prompt, exactly once"""
    repository_name: str | None = None
    """the special token before a repository's name; None where the family was not trained on whole repositories"""
    file_separator: str | None = None
    """the special token before each file's path"""
    sign: str | None = None
    """a further token that tells this family from others with the same markers"""

    @property
    def markers(self) -> tuple[str, ...]:
        """The special tokens that every prompt of this family holds."""
        return tuple(text for text in (self.start, self.prefix, self.suffix, self.middle) if text is not None)

    def build(
        self, prefix_ids: Sequence[int], suffix_ids: Sequence[int], tokenizer: Tokenizer, before: Sequence[int] = ()
    ) -> list[int]:
        """The prompt that asks for the text between two others: `len(markers)` ids more than they.

        Args:
            prefix_ids: ids of the text before the cursor.
            suffix_ids: ids of the text after it.
            tokenizer: the vocabulary that the format was detected in.
            before: what `repository` gave.
        """
        return [*_ids(tokenizer, self.start), *before, *self._hole(prefix_ids, suffix_ids, tokenizer)]

    def _hole(self, prefix_ids: Sequence[int], suffix_ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
        before = [*_ids(tokenizer, self.prefix), *prefix_ids]
        after = [*_ids(tokenizer, self.suffix), *suffix_ids]
        parts = before + after if self.order == "psm" else after + before
        return parts + _ids(tokenizer, self.middle)

    def split(self, ids: Sequence[int], tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Prefix and suffix of a prompt that `build` made; what was written behind it belongs to the prefix.

        None for a prompt of another form.
        """
        marks = [token for text in (self.prefix, self.suffix, self.middle) for token in _ids(tokenizer, text)]
        if any(ids.count(mark) != 1 for mark in marks):
            return None
        prefix, suffix, *middle = (ids.index(mark) for mark in marks)
        if self.order == "spm":
            return tuple(ids[prefix + 1 :]), tuple(ids[suffix + 1 : prefix])
        end = middle[0] if middle else len(ids)
        return (*ids[prefix + 1 : suffix], *ids[end + 1 :]), tuple(ids[suffix + 1 : end])

    def gap(self, ids: Sequence[int], tokenizer: Tokenizer) -> range | None:
        """Places, in a prompt that `build` made, of all that stands between the prefix and what is written.

        Without those the prompt is the text up to the cursor. None where the prefix has read the suffix.
        """
        if self.order == "spm":
            return None
        (suffix,), middle = _ids(tokenizer, self.suffix), _ids(tokenizer, self.middle)
        return range(ids.index(suffix), ids.index(middle[0]) + 1 if middle else len(ids))

    def repository(
        self, name: str, files: Sequence[tuple[str, Sequence[int]]], path: str, tokenizer: Tokenizer
    ) -> list[int]:
        """What goes before a file's own ids so that it is read as one of a repository; nothing where none is known.

        Args:
            name: the repository's name.
            files: path, and ids of the body, of each other file; the most useful last.
            path: the edited file's path.
            tokenizer: the vocabulary that the format was detected in.
        """
        if self.repository_name is None or self.file_separator is None:
            return []
        separator = _ids(tokenizer, self.file_separator)
        ids = [*_ids(tokenizer, self.repository_name), *tokenizer.encode(f"{name}\n")]
        for other, body in files:
            ids += [*separator, *tokenizer.encode(f"{other}\n"), *body, *tokenizer.encode("\n")]
        return [*ids, *separator, *tokenizer.encode(f"{path}\n")]


_PIPED = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
FORMATS = (
    FimFormat("codegemma", "psm", *_PIPED, start="<bos>", sign="<|file_separator|>"),
    FimFormat("qwen", "psm", *_PIPED, repository_name="<|repo_name|>", file_separator="<|file_sep|>"),
    FimFormat("starcoder", "psm", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FimFormat("codellama", "psm", "▁<PRE>", "▁<SUF>", "▁<MID>", start="<s>"),
    FimFormat("deepseek", "psm", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", start="<｜begin▁of▁sentence｜>"),
    FimFormat("codestral", "spm", "[PREFIX]", "[SUFFIX]", start="<s>"),
)


def detect(tokenizer: Tokenizer) -> FimFormat | None:
    """The format of a vocabulary's family; None where it has none, and a plain prefix is all that one can ask with."""
    for known in FORMATS:
        needed = known.markers if known.sign is None else (*known.markers, known.sign)
        if all(tokenizer.special(text) is not None for text in needed):
            return known
    return None


def _ids(tokenizer: Tokenizer, text: str | None) -> list[int]:
    token = None if text is None else tokenizer.special(text)
    return [] if token is None else [token]
