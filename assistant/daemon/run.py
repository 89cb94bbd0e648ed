"""One completion under way: from a job and a session to the protocol's events, a turn at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from assistant import protocol
from assistant.daemon import wire
from assistant.daemon.anchor import Place, Reader, prompt_at, prompt_here
from assistant.daemon.engine_room import Text
from assistant.daemon.host import Engine
from assistant.daemon.jobs import Job
from assistant.daemon.prompt import Surroundings
from assistant.daemon.sessions import Kept
from assistant.daemon.wanted import Wanted
from assistant.daemon.write import Means, ending, write
from assistant.engine.generate import Pace
from assistant.engine.lookup import Passages
from assistant.engine.tree import TreeShape
from assistant.engine.types import Origin, StepResult
from models.tokenizer import Tokenizer

LookAround = Callable[[Text, Tokenizer], Surroundings | None]
"""what the target reads of other files for a place"""
Ration = Callable[[Job, TreeShape], tuple[TreeShape, protocol.Choice]]
"""the tree that a job's next step may grow, of the one that was asked for"""


@dataclass(slots=True)
class Written:
    """What a completion has come to so far."""

    text: str = ""
    tokens: list[int] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    finish: str | None = None
    reason: str = ""
    steps: int = 0
    attempts: int = 0
    """texts that were begun"""
    confidence: float = 1.0
    prompt_tokens: int = 0
    reused: int = 0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0


class Run:
    """Advances a completion by one chunk of its prompt or one step at a time.

    The prompt is built here, when the job has its turn: one that was superseded before never pays for it.
    """

    def __init__(
        self,
        job: Job,
        engine: Engine,
        kept: Kept,
        wanted: Wanted,
        ration: Ration,
        look_around: LookAround,
        library: tuple[Passages, ...],
        chunk: int,
    ) -> None:
        self.written = Written()
        self.kept = kept
        self.late_steps = 0
        """that ran after the request was withdrawn, and that nobody has taken over yet"""
        self.method = wanted.method
        self._job = job
        self._spell = engine.tokenizer.token_bytes
        self._ration = ration
        self._choice: protocol.Choice | None = None
        policy = job.request.options.policy
        reader = Reader(engine.tokenizer, engine.fim, wanted.window, wanted.room, closers=policy)
        place = Place(job.text.text, job.text.cursor)
        if job.request.anchored:
            prompt, kept.anchor = prompt_at(place, reader, kept.anchor, lambda: look_around(job.text, engine.tokenizer))
        else:  # nobody types: the prompt of this place alone, as without a daemon
            prompt = prompt_here(place, reader)
        self.prompt = replace(prompt, library=library)
        pace = Pace(chunk, self._shape)
        means = Means(kept.session, engine.tokenizer, lambda: bool(self._job.withdrawn), pace)
        self._steps = write(job, self.prompt, wanted, means)

    def advance(self) -> tuple[StepResult, protocol.Step] | None:
        """Run a chunk of the prompt (None) or a step; `written.finish` is set with the last one.

        Raises whatever the engine raises.
        """
        self._choice = None
        shown = next(self._steps)
        result = None if shown is None else shown.step
        self.late_steps += bool(self._job.withdrawn and (result is None or result.forwards or result.prompt_tokens))
        if shown is None or result is None:
            return None
        written = self.written
        if result.prompt_tokens or shown.anew:
            self._begin_attempt(written)
        event = wire.step(self._job.id, written.steps, shown, self._choice, self._spell)
        written.steps += 1
        written.text += shown.text
        written.tokens += result.tokens
        written.origins += result.origins
        written.prompt_tokens += result.prompt_tokens
        written.reused += result.reused
        written.prefill_ms += result.prefill_ms
        written.decode_ms += result.draft_ms + result.verify_ms
        written.finish, written.reason = ending(shown)
        if shown.confidence is not None:
            written.confidence = shown.confidence
        return result, event

    def hand_over(self, heir: Job, typed: str) -> protocol.Step | None:
        """Go on for a request whose user typed the first characters of what is being written.

        Returns a step with everything so far, its text without what was typed; None where nothing was written yet.
        """
        self._job, self.late_steps = heir, 0
        written = replace(self.written, text=self.written.text[len(typed) :], steps=0)
        self.written = written
        if not written.tokens:
            return None
        written.steps = 1
        return protocol.Step(
            request=heir.id,
            index=0,
            text=written.text,
            tokens=tuple(written.tokens),
            texts=wire.texts(written.tokens, self._spell),
            origins=tuple(map(str, written.origins)),
            prompt_tokens=written.prompt_tokens,
            reused=written.prompt_tokens,
            draft_reused=written.prompt_tokens,
            forwards=0,
        )

    def close(self) -> None:
        """Advance no more; the session is sound and may be released."""
        self._steps = iter(())

    def _begin_attempt(self, written: Written) -> None:
        """Another text takes the place of one of which nothing may be shown: its tokens are no part of this one."""
        written.attempts += 1
        written.tokens, written.origins = [], []

    def _shape(self, shape: TreeShape) -> TreeShape:
        chosen, self._choice = self._ration(self._job, shape)
        return chosen
