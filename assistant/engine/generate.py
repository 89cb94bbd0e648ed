"""One completion: prefill, then draft, verify and keep, step by step, as a generator of `StepResult`s."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from time import perf_counter

import torch
from torch import Tensor

from assistant.engine.emit import Emission, Emitter, TokenBytes
from assistant.engine.sampling import draw, probabilities
from assistant.engine.session import Session
from assistant.engine.tree import DraftTree, TreeShape, root_only
from assistant.engine.types import FinishReason, GenerateOptions, Origin, Prompt, Sampling, StepResult
from assistant.engine.verify import Verdict, verify
from assistant.errors import ContextOverflowError, UsageError
from models.target import Forward

_PREFILL_CHUNK = 256
"""rows between two looks at whether the request still stands"""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a completion shares its machine with others."""

    chunk: int = _PREFILL_CHUNK
    """rows of the prompt between two pauses"""
    shape: Callable[[TreeShape], TreeShape] = lambda shape: shape
    """the tree that the next step may grow, of the one that was asked for; asked anew for each step"""


_ALONE = Pace()


def generate(
    session: Session,
    prompt: Prompt,
    options: GenerateOptions,
    tokenizer: TokenBytes | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[StepResult]:
    """Continue a prompt. The first result is the prefill's and brings one token; the last one has `finish` set.

    Whatever the session's drafter proposes, greedy tokens are those of plain decoding, and sampled ones have its
    distribution. A caller may stop iterating at any time; the session stays sound.

    Raises:
        UsageError: the prompt has no token, or nothing may be written.
        ContextOverflowError: the prompt leaves no room in the target's context.
    """
    steps = unfold(session, prompt, options, tokenizer, cancelled)
    return (step for step in steps if step is not None)


def unfold(
    session: Session,
    prompt: Prompt,
    options: GenerateOptions,
    tokenizer: TokenBytes | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    pace: Pace = _ALONE,
) -> Iterator[StepResult | None]:
    """As `generate`, with a pause (None) after each chunk of the prompt but the last: others may use the engine then.

    Whatever `pace` says, tokens are the same.
    """
    limit = _token_limit(session, prompt, options)
    options = replace(options, max_tokens=limit)
    emitter = Emitter(options, tokenizer, prompt.forced)
    healing = _Healing(prompt.forced, tokenizer)
    rng = Random(options.sampling.seed)  # noqa: S311  (a reproducible draw, no secret)
    started = perf_counter()
    reused = _begin(session, prompt)
    draft_reused = session.draft_reused
    spent = _since(started)
    tree = root_only(prompt.ids[-1])
    for start in range(reused, len(prompt.ids), pace.chunk):
        if start > reused:
            yield None
        if cancelled():
            yield _cancelled(tree)
            return
        started = perf_counter()
        forward = _read(session, prompt.ids[start : start + pace.chunk], start)
        spent += _since(started)
    verdict = Verdict((), healing.choose(forward.logits[0], options.sampling, rng), Origin.TARGET)
    emission = emitter.take([verdict.token], [verdict.origin])
    first = _result(tree, verdict, emission, _Timing(prefill=spent))
    yield replace(first, forwards=0, prompt_tokens=len(prompt.ids), reused=reused, draft_reused=draft_reused)
    while emission.finish is None:
        if cancelled():
            yield _cancelled(root_only(verdict.token), emitter.flush())
            return
        wanted = replace(options, tree=pace.shape(options.tree))
        with session.moving():
            tree, verdict, timing = _step(session, verdict.token, wanted, healing, rng, limit - emitter.written)
        emission = emitter.take(
            [*(tree.tokens[n] for n in verdict.path), verdict.token],
            [*(Origin(tree.origins[n]) for n in verdict.path), verdict.origin],
        )
        yield _result(tree, verdict, emission, timing)


@dataclass(frozen=True, slots=True)
class _Timing:
    """Milliseconds of one step's stages."""

    prefill: float = 0.0
    draft: float = 0.0
    verify: float = 0.0


class _Healing:
    """Makes the first tokens spell the bytes that were typed but taken off the prompt."""

    def __init__(self, forced: bytes, tokenizer: TokenBytes | None) -> None:
        self.forced = forced
        self._tokenizer = tokenizer

    def choose(self, logits: Tensor, sampling: Sampling, rng: Random) -> int:
        """The next token from (V,) logits, among those that agree with what is still to be spelt."""
        if not self.forced:
            return _pick(logits, sampling, rng)
        assert self._tokenizer is not None
        bias = torch.full_like(logits, -torch.inf)
        bias[self._allowed(len(logits))] = 0.0
        token = _pick(logits + bias, sampling, rng)
        self.forced = self.forced[len(self._tokenizer.token_bytes(token)) :]
        return token

    def _allowed(self, vocabulary: int) -> list[int]:
        assert self._tokenizer is not None
        allowed = [t for t in self._tokenizer.completions_of(self.forced) if t < vocabulary]
        if self.forced.isspace():
            # A line's indentation is cut before its last blank, which belongs to the word that follows.
            return allowed
        # Beginnings of a word are very probable and spell it badly: they are taken only where nothing spells it whole.
        return [t for t in allowed if self._tokenizer.token_bytes(t).startswith(self.forced)] or allowed


def _pick(logits: Tensor, sampling: Sampling, rng: Random) -> int:
    return int(logits.argmax()) if sampling.greedy else draw(probabilities(logits, sampling), rng)


@torch.inference_mode()
def _begin(session: Session, prompt: Prompt) -> int:
    with session.moving():
        session.cache.reserve(len(prompt.ids))
        return session.begin(prompt)


@torch.inference_mode()
def _read(session: Session, ids: Sequence[int], start: int) -> Forward:
    """Run rows of the prompt that begin at position `start`."""
    with session.moving():
        rows, positions = _rows(session, ids, range(start, start + len(ids)))
        forward = session.target.forward(rows, positions, session.cache, last_only=True)
        session.commit(start, range(len(ids)), ids)
        session.drafter.observe(ids, forward.features)
    return forward


@torch.inference_mode()
def _step(
    session: Session, root: int, options: GenerateOptions, healing: _Healing, rng: Random, room: int
) -> tuple[DraftTree, Verdict, _Timing]:
    """Draft below `root`, verify in one forward, keep the accepted rows."""
    started = perf_counter()
    base = session.cache.length
    if healing.forced:
        tree = root_only(root)
    else:
        shape = _bounded(options.tree, room, session.cache.limit - base)
        tree = session.drafter.draft(root, shape, options.sampling, rng)
    drafted = perf_counter()
    forward = _forward_tree(session, tree, base)
    if healing.forced:
        verdict = Verdict((), healing.choose(forward.logits[0], options.sampling, rng), Origin.TARGET)
    else:
        verdict = verify(tree, forward.logits, options.sampling, rng)
    kept = (0, *verdict.path)
    tokens = [tree.tokens[n] for n in kept]
    session.commit(base, kept, tokens)
    session.drafter.observe(tokens, forward.features[list(kept)])
    return tree, verdict, _Timing(draft=(drafted - started) * 1e3, verify=_since(drafted))


def _forward_tree(session: Session, tree: DraftTree, base: int) -> Forward:
    """The target's judgement of every node, in one masked forward."""
    ids, positions = _rows(session, tree.tokens, [base + depth for depth in tree.depths])
    # A chain is what the causal mask describes, and attention without a mask is the quicker one.
    is_chain = tree.depth == tree.drafted
    mask = None if is_chain else torch.from_numpy(tree.mask()).to(ids.device)
    return session.target.forward(ids, positions, session.cache, mask)


def _rows(session: Session, ids: Sequence[int], positions: Sequence[int]) -> tuple[Tensor, Tensor]:
    device = session.target.spec.device
    return torch.tensor(ids, device=device), torch.tensor(positions, device=device)


def _bounded(shape: TreeShape, room: int, context: int) -> TreeShape:
    """No deeper than tokens are still wanted (the bonus token is one of them), no larger than the context holds."""
    depth = max(0, min(shape.depth, room - 1, context - 1))
    return replace(shape, depth=depth, nodes=min(shape.nodes, context - 1) if depth else 0)


def _token_limit(session: Session, prompt: Prompt, options: GenerateOptions) -> int:
    if not prompt.ids:
        raise UsageError(
            "there is no prompt: a model that has no token for the beginning of a text needs at least one character"
        )
    if options.max_tokens < 1:
        raise UsageError(f"at least one token must be asked for, not {options.max_tokens} (--max-tokens)")
    room = session.cache.limit - len(prompt.ids)
    if room < 1:
        raise ContextOverflowError(
            f"the prompt has {len(prompt.ids)} tokens and the context of {session.target.spec.name} holds "
            f"{session.cache.limit}: shorten the prompt"
        )
    return min(options.max_tokens, room)


def _result(tree: DraftTree, verdict: Verdict, emission: Emission, timing: _Timing) -> StepResult:
    return StepResult(
        tokens=emission.tokens,
        origins=emission.origins,
        text=emission.text,
        tree=tree,
        accepted=verdict.path,
        prefill_ms=timing.prefill,
        draft_ms=timing.draft,
        verify_ms=timing.verify,
        finish=emission.finish,
    )


def _cancelled(tree: DraftTree, text: str = "") -> StepResult:
    return StepResult((), (), text, tree, (), forwards=0, finish=FinishReason.CANCELLED)


def _since(started: float) -> float:
    return (perf_counter() - started) * 1e3
