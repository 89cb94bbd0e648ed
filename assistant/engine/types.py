"""The values that flow through the engine: what is asked, and what every step answers."""

from dataclasses import dataclass, field
from enum import StrEnum

from assistant.engine.lookup import Passages
from assistant.engine.tree import DraftTree, TreeShape


class Origin(StrEnum):
    """Who wrote an accepted token."""

    HEAD = "head"
    """drafted by the EAGLE head, and accepted"""
    DRAFT = "draft"
    """drafted by an independent draft model, and accepted"""
    RETRIEVAL = "retrieval"
    """found in the text around the cursor, and accepted"""
    CORRECTION = "correction"
    """the target's own token where every draft was rejected"""
    BONUS = "bonus"
    """the target's own token after a path whose every token was accepted"""
    TARGET = "target"
    """the target's own token where nothing was drafted: the prefill's, and those of plain steps"""


class FinishReason(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    """the target wrote a stop token, or a stop string"""
    LENGTH = "length"
    """`max_tokens` tokens were written"""
    FILTERED = "filtered"
    """a text policy refused what was written"""
    CANCELLED = "cancelled"
    """the caller withdrew the request"""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn from the target's logits; temperature 0 is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    """keep the smallest set of tokens whose probability reaches this (1 keeps all)"""
    top_k: int = 0
    """keep this many tokens (0 keeps all)"""
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is always taken."""
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to continue, and the plain text around the cursor that retrieval may look into."""

    ids: tuple[int, ...]
    """what the target reads, special tokens included"""
    prefix: tuple[int, ...] = ()
    """the ordinary tokens before the cursor; empty means that `ids` is the prefix"""
    suffix: tuple[int, ...] = ()
    """the ordinary tokens after the cursor"""
    forced: bytes = b""
    """typed bytes that were taken off the prompt's end, which the first tokens must spell (token healing)"""
    gap: range | None = None
    """places in `ids` of what stands between the prefix and what is written; None where nothing can be left out"""
    library: tuple[Passages, ...] = field(default=(), compare=False, repr=False)
    """other texts that retrieval may look into, the likeliest first"""


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What one completion may cost and where it ends."""

    max_tokens: int = 128
    sampling: Sampling = field(default_factory=Sampling)
    tree: TreeShape = field(default_factory=TreeShape)
    stop_ids: frozenset[int] = frozenset()
    """the completion ends before any of these"""
    stop_strings: tuple[str, ...] = ()
    """the text ends before the first of these; needs a tokenizer"""


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: what was drafted, what the target accepted, and what it took."""

    tokens: tuple[int, ...]
    """accepted token ids in order; a stop token is not among them"""
    origins: tuple[Origin, ...]
    """one a token"""
    text: str
    """the text that became certain with this step, stop strings and forced bytes taken off ("" without a tokenizer)"""
    tree: DraftTree
    """what was verified; its root is the token that the step started from (for a prefill, its last prompt token)"""
    accepted: tuple[int, ...]
    """indices into the tree of the accepted path, root left out, before limits and stops cut it"""
    forwards: int = 1
    """forwards of the target in this step (0 where an earlier step's logits were enough)"""
    prefill_ms: float = 0.0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    prompt_tokens: int = 0
    """tokens of the prompt, in a prefill's result"""
    reused: int = 0
    """of which this many were still in the cache"""
    draft_reused: int = 0
    """and this many in the drafter's own"""
    finish: FinishReason | None = None
    """set in the last result alone"""
