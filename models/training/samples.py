"""What the target is shown: windows of files, fill-in-the-middle prompts, and beginnings that it goes on writing.

Acceptance is decided on what the target itself writes, so that most samples are prompts.
"""

import ast
import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from models.fim import detect
from models.tokenizer import Tokenizer
from models.training.corpus import Exclusion, SourceFile

Kind = Literal["plain", "continued", "documented", "invented", "infilled", "logged"]
_FEWEST, _MOST = 24, 280
"""tokens of a function's head and docstring"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One text, or the beginning of one."""

    kind: Kind
    language: str
    ids: tuple[int, ...]
    write: int
    """tokens that the target may add greedily; 0 where the text is complete"""
    prompt_tokens: int | None = None
    """of a complete text: where the target's own words begin; None where it has none"""


@dataclass(frozen=True, slots=True)
class Mix:
    """How many samples of each kind, and how long."""

    plain: int
    continued: int
    documented: int
    invented: int
    infilled: int
    window: int = 384
    """tokens of a plain window"""
    context: int = 160
    """tokens before the place where the target continues"""
    write: int = 144
    """tokens that the target adds"""

    @classmethod
    def of(cls, samples: int, write: int = 144) -> "Mix":
        """The usual shares of `samples` texts."""
        plain, twice, most = (max(1, round(part * samples / 11)) for part in (1, 2, 4))
        return cls(plain=plain, continued=twice, documented=most, invented=twice, infilled=twice, write=write)


_HEADERS = (
    "",
    "\n",
    "from typing import List\n\n\n",
    "from typing import List, Dict, Optional, Tuple\n\n\n",
    "import math\n\n\n",
)
_STEMS = """
add_ all_ any_ apply_ average_ balance_ binary_ build_ calculate_ cap_ check_ clamp_ clean_ closest_ combine_ common_
compare_ compress_ compute_ convert_ count_ cumulative_ decode_ diff_ digit_ distance_ divide_ double_ drop_ encode_
evaluate_ even_ exchange_ expand_ extract_ factorial_ fibonacci_ fill_ filter_ find_ first_ flatten_ format_
frequency_ gcd_ generate_ get_ group_ has_ hex_ histogram_ index_ insert_ intersect_ interleave_ inverse_ is_ join_
largest_ last_ lcm_ list_ longest_ lower_ make_ map_ match_ matrix_ max_ maximum_ mean_ median_ merge_ min_ missing_
mode_ move_ multiply_ nested_ next_ normalize_ nth_ number_ odd_ order_ pad_ pairs_ palindrome_ parse_ partition_
permutation_ polynomial_ power_ prefix_ prime_ product_ prod_ range_ rank_ remove_ repeat_ replace_ reverse_ rotate_
round_ rolling_ running_ same_ search_ second_ select_ separate_ sequence_ shift_ shortest_ simplify_ sliding_
smallest_ solve_ sort_ split_ square_ string_ strip_ subset_ substring_ sum_ swap_ symmetric_ take_ to_ transpose_
triangle_ trim_ truncate_ unique_ update_ upper_ validate_ vowels_ word_ words_ zip_
"""


def draw(
    corpus: Sequence[SourceFile], tokenizer: Tokenizer, mix: Mix, exclusion: Exclusion, seed: int = 0
) -> list[Sample]:
    """Samples of all kinds, shuffled, so that any beginning of the list has the whole mix."""
    rng = random.Random(seed)  # noqa: S311 - nothing secret
    wanted: dict[Kind, int] = {
        "plain": mix.plain,
        "continued": mix.continued,
        "infilled": mix.infilled if detect(tokenizer) else 0,
    }
    makers: dict[Kind, Callable[[SourceFile], Sample | None]] = {
        "plain": lambda file: window(file, tokenizer, mix, rng),
        "continued": lambda file: continued(file, tokenizer, mix, rng),
        "infilled": lambda file: infilled(file, tokenizer, mix, rng),
    }
    samples = [invented(tokenizer, mix, rng) for _ in range(mix.invented)]
    samples += documented(corpus, tokenizer, mix, exclusion, rng)
    for kind, maker in makers.items():
        samples += _cycle(_by_language(corpus), maker, wanted[kind], rng)
    rng.shuffle(samples)
    return samples


def _by_language(files: Sequence[SourceFile]) -> list[list[SourceFile]]:
    groups: dict[str, list[SourceFile]] = {}
    for file in files:
        groups.setdefault(file.language, []).append(file)
    return list(groups.values())


def _cycle(
    groups: list[list[SourceFile]], maker: Callable[[SourceFile], Sample | None], count: int, rng: random.Random
) -> list[Sample]:
    """`count` samples, or as many as four tries for each bring; languages take turns, Python every other one."""
    made: list[Sample] = []
    if not groups:
        return made
    python = [group for group in groups if group[0].language == "python"]
    turns = [group for other in groups for group in ([other, *python] if other not in python else [other])]
    for attempt in range(4 * count):
        if len(made) == count:
            break
        sample = maker(rng.choice(turns[attempt % len(turns)]))
        if sample is not None:
            made.append(sample)
    return made


def window(file: SourceFile, tokenizer: Tokenizer, mix: Mix, rng: random.Random) -> Sample | None:
    """A run of the file's own tokens from the start of a line."""
    ids = tokenizer.encode(_from_line(file.text, rng, 8 * mix.window))
    ids = ids[: mix.window]
    return Sample("plain", file.language, tuple(ids), 0) if len(ids) > mix.window // 4 else None


def continued(file: SourceFile, tokenizer: Tokenizer, mix: Mix, rng: random.Random) -> Sample | None:
    """Lines of a file up to one that opens a block or ends a statement; the target goes on."""
    lines = file.text.splitlines(keepends=True)
    opening = [i for i, line in enumerate(lines) if line.rstrip().endswith(("{", ":", "(", "do", "then"))]
    if not opening:
        return None
    end = rng.choice(opening) + 1
    ids = tokenizer.encode("".join(lines[max(0, end - 40) : end]))[-mix.context :]
    return Sample("continued", file.language, tuple(ids), mix.write) if len(ids) >= 16 else None


def infilled(file: SourceFile, tokenizer: Tokenizer, mix: Mix, rng: random.Random) -> Sample | None:
    """A gap as an editor's user leaves it: the rest of a line, a line, or a block of lines."""
    form = detect(tokenizer)
    lines = file.text.splitlines(keepends=True)
    filled = [i for i, line in enumerate(lines) if len(line.strip()) > 8]
    if form is None or len(filled) < 12:
        return None
    first = rng.choice(filled)
    cut = rng.choice(("rest", "line", "block"))
    line = lines[first]
    indent = len(line) - len(line.lstrip())
    keep = rng.randint(indent + 1, len(line.rstrip()) - 1) if cut == "rest" else indent
    after = first + (rng.randint(2, 8) if cut == "block" else 1)
    before = "".join(lines[max(0, first - 40) : first]) + line[:keep]
    behind = "\n" + "".join(lines[after : after + 24])
    prefix, suffix = tokenizer.encode(before)[-mix.context :], tokenizer.encode(behind)[: mix.context // 2]
    return Sample("infilled", file.language, tuple(form.build(prefix, suffix, tokenizer)), mix.write // 2)


def documented(
    corpus: Sequence[SourceFile], tokenizer: Tokenizer, mix: Mix, exclusion: Exclusion, rng: random.Random
) -> list[Sample]:
    """Heads and docstrings of Python functions, `mix.documented` at most; the target writes the bodies."""
    python = [file for file in corpus if file.language == "python"]
    heads = {
        head for file in python for name, head in function_heads(file.text) if not exclusion.refuses_function(name)
    }
    ordered = sorted(heads)
    rng.shuffle(ordered)
    made: list[Sample] = []
    for head in ordered:
        ids = tokenizer.encode(rng.choice(_HEADERS) + head)
        if len(made) < mix.documented and _FEWEST <= len(ids) <= _MOST:
            made.append(Sample("documented", "python", tuple(ids), mix.write))
    return made


def invented(tokenizer: Tokenizer, mix: Mix, rng: random.Random) -> Sample:
    """The beginning of a small function, whose name and docstring the target draws at random before it writes."""
    text = f"{rng.choice(_HEADERS)}def {rng.choice(_STEMS.split())}"
    return Sample("invented", "python", tuple(tokenizer.encode(text)), mix.write)


def function_heads(text: str) -> list[tuple[str, str]]:
    """Name, and source from `def` to the docstring's end, of a module's documented functions that take no `self`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.splitlines(keepends=True)
    heads = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not ast.get_docstring(node) or len(node.body) == 1:
            continue
        if node.args.args and node.args.args[0].arg in {"self", "cls"}:
            continue
        end = node.body[0].end_lineno or node.lineno
        heads.append((node.name, textwrap.dedent("".join(lines[node.lineno - 1 : end]))))
    return heads


def documented_beginning(text: str) -> str | None:
    """Of a text that the target drew, what ends with the first docstring's end; None where none ends."""
    for quote in ('"""', "'''"):
        opening = text.find(quote)
        closing = text.find(quote, opening + 3)
        if opening > 0 and closing > 0:
            return text[: closing + 3] + "\n"
    return None


def _from_line(text: str, rng: random.Random, length: int) -> str:
    start = rng.randrange(max(1, len(text) - length // 2))
    start = text.rfind("\n", 0, start) + 1
    return text[start : start + length]
