"""What a hole's own package would give to its prompt, found as the daemon finds it."""

from collections.abc import Callable

from assistant.bench.holes import Hole
from assistant.config.languages import language_of
from assistant.daemon.context.facts import Facts, definitions_of, imports_of
from assistant.daemon.context.passages import fit, outline
from assistant.daemon.context.ranking import rank
from assistant.daemon.prompt import Surroundings
from models.tokenizer import Tokenizer


class _Package:
    """A hole's files as something to look names up in."""

    def __init__(self, hole: Hole) -> None:
        self.texts = dict(hole.files)
        self._facts: dict[str, Facts] = {}
        self._definers: dict[str, tuple[str, ...]] = {}
        for path, text in hole.files:
            definitions = definitions_of(text, language_of(path) or hole.language)
            self._facts[path] = Facts(path, len(text), 0, definitions, imports_of(text))
            for name in {definition.name for definition in definitions}:
                self._definers[name] = (*self._definers.get(name, ()), path)

    def facts(self, path: str) -> Facts | None:
        return self._facts.get(path)

    def definers(self, name: str) -> tuple[str, ...]:
        return self._definers.get(name, ())


def surroundings_within(budget: int, tokenizer: Tokenizer) -> Callable[[Hole], Surroundings | None] | None:
    """Finds a hole's surroundings of at most `budget` tokens; None where there is no budget."""
    if budget < 1:
        return None

    def find(hole: Hole) -> Surroundings | None:
        package = _Package(hole)
        text, cursor = hole.prefix + hole.suffix, len(hole.prefix)
        outlines = [
            outline(one.path, package.texts[one.path], language_of(one.path) or hole.language, one.names)
            for one in rank(text, cursor, hole.path, hole.language, package)
        ]
        passages = fit([one for one in outlines if one], lambda text: len(tokenizer.encode(text)), budget)
        files = tuple((one.path, one.text) for one in reversed(passages))
        return Surroundings(hole.path.partition("/")[0], files, hole.path) if files else None

    return find
