"""Who fills holes: this program as its daemon asks the model, with the text policy or without, and llama.cpp."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from assistant.bench.contenders import Contender
from assistant.bench.holes import Hole
from assistant.daemon.anchor import Place, Reader, prompt_at
from assistant.daemon.choosing import DEFAULT_CHOICE, Choice, suggest
from assistant.daemon.prompt import DEFAULT_WINDOW, Surroundings
from assistant.daemon.text import Policy, Settings
from assistant.engine.draft import Drafter
from assistant.engine.generate import generate
from assistant.engine.session import Session
from assistant.engine.types import GenerateOptions, Prompt
from models import fim
from models.loading import LoadedModel

ON, OFF, LINE = "on", "off", "first line"
"""policies: this program's; none; cut behind the first line"""


@dataclass(frozen=True, slots=True)
class Filled:
    """What somebody put into a hole."""

    text: str
    ms: float
    """until nothing more could change, the prompt's own time included"""
    reason: str = ""


class Infiller(Protocol):
    """Fills holes; one run may answer for several policies."""

    @property
    def method(self) -> str: ...
    @property
    def policies(self) -> Sequence[str]: ...

    def fill(self, hole: Hole) -> dict[str, Filled]:
        """What it writes, by policy, with nothing kept from earlier holes."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """How this program is asked."""

    policies: tuple[str, ...] = (ON, OFF)
    choice: Choice = DEFAULT_CHOICE
    surroundings: Callable[[Hole], Surroundings | None] | None = None
    """what it reads of other files"""


class OwnInfiller:
    """This program: the daemon's prompt and the engine, with the text policy or without."""

    def __init__(
        self, method: str, loaded: LoadedModel, new_drafter: Callable[[], Drafter], max_tokens: int, asked: Asked
    ) -> None:
        self.method = method
        self.policies = asked.policies
        self._loaded = loaded
        self._new_drafter = new_drafter
        self._fim = fim.detect(loaded.tokenizer)
        self._options = GenerateOptions(max_tokens=max_tokens, stop_ids=loaded.tokenizer.eos_ids)
        self._asked = asked

    def fill(self, hole: Hole) -> dict[str, Filled]:
        """The prompt is read once; that time counts for every policy."""
        started = time.perf_counter()
        text, cursor = hole.prefix + hole.suffix, len(hole.prefix)
        surroundings = self._asked.surroundings(hole) if self._asked.surroundings is not None else None
        reader = Reader(self._loaded.tokenizer, self._fim, DEFAULT_WINDOW, surroundings=surroundings)
        prompt, _ = prompt_at(Place(text, cursor), reader, None)
        session = Session(self._loaded.target, self._new_drafter())
        before_ms = (time.perf_counter() - started) * 1e3
        found: dict[str, Filled] = {}
        for policy in self.policies:
            started = time.perf_counter()
            filled, prefill_ms = self._write(session, prompt, hole, policy)
            written_ms = (time.perf_counter() - started) * 1e3 - prefill_ms
            if not found:
                before_ms += prefill_ms
            found[policy] = replace(filled, ms=before_ms + written_ms)
        return found

    def _write(self, session: Session, prompt: Prompt, hole: Hole, policy: str) -> tuple[Filled, float]:
        """What is written, its time left out, and the milliseconds that reading the prompt took."""
        tokenizer = self._loaded.tokenizer
        if policy == OFF:
            steps = list(generate(session, prompt, self._options, tokenizer))
            return Filled("".join(step.text for step in steps), 0.0), steps[0].prefill_ms
        shown = [
            one
            for one in suggest(
                session,
                prompt,
                self._options,
                tokenizer,
                lambda: Policy.begin(hole.prefix + hole.suffix, len(hole.prefix), hole.language, Settings()),
                choice=self._asked.choice,
            )
            if one is not None
        ]
        verdict = shown[-1].verdict
        assert verdict is not None
        return Filled(verdict.text, 0.0, verdict.reason), shown[0].step.prefill_ms


class LlamaInfiller:
    """llama.cpp asked the plain way, its text whole and cut behind its first line that is not blank."""

    method = "llama.cpp"
    policies = (OFF, LINE)

    def __init__(self, peer: Contender, loaded: LoadedModel, max_tokens: int) -> None:
        self._peer = peer
        self._tokenizer = loaded.tokenizer
        self._fim = fim.detect(loaded.tokenizer)
        self._max_tokens = max_tokens

    def fill(self, hole: Hole) -> dict[str, Filled]:
        started = time.perf_counter()
        prefix, suffix = self._tokenizer.encode(hole.prefix), self._tokenizer.encode(hole.suffix)
        ids = self._fim.build(prefix, suffix, self._tokenizer) if self._fim is not None and suffix else prefix
        run = self._peer.run(Prompt(tuple(ids)), self._max_tokens)
        text = self._tokenizer.decode(run.tokens)
        whole = _filled(text, started)
        line = first_line(text)
        share = len(self._tokenizer.encode(line)) / max(1, len(run.tokens))
        return {OFF: whole, LINE: Filled(line, (run.first_seconds + run.rest_seconds * min(1.0, share)) * 1e3)}


def first_line(text: str) -> str:
    """A text up to the end of its first line that is not blank, the line's end included."""
    at = len(text) - len(text.lstrip())
    end = text.find("\n", at)
    return text if end < 0 else text[: end + 1]


def _filled(text: str, started: float, reason: str = "") -> Filled:
    return Filled(text, (time.perf_counter() - started) * 1e3, reason)
