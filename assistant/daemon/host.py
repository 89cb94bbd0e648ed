"""The model that the daemon hosts: loaded when needed, freed when told, moved to the CPU when a GPU is full."""

import ctypes
import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from assistant.daemon.pace import Pace
from assistant.engine.cost import Costs
from assistant.engine.measure import costs_of
from assistant.engine.methods import HEAD_METHODS, make_drafter, resolve_method
from assistant.engine.session import Session
from assistant.errors import UsageError, UserError
from models import fim
from models.catalog import DEFAULT_MODEL
from models.draft_head import DraftHead
from models.hashes import Progress
from models.loading import find_head, load
from models.target import Target
from models.tokenizer import Tokenizer

DEFAULT_DRAFTS: Mapping[str, str] = {"qwen2.5-coder-1.5b": "qwen2.5-coder-0.5b"}
"""target -> the smaller model of its family that drafts for it"""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which model is to be hosted, and where."""

    name: str = DEFAULT_MODEL
    head: str | None = None
    """None: the one shipped for the model, if there is one"""
    draft: str | None = None
    """of method sps; None: the family's smaller model"""
    precision: str = "auto"
    device: str = "auto"

    @property
    def draft_name(self) -> str | None:
        """Who drafts by method sps, where there is anybody."""
        return self.draft or DEFAULT_DRAFTS.get(self.name)


class Engine:
    """A loaded target with what belongs to it."""

    def __init__(
        self,
        target: Target,
        tokenizer: Tokenizer,
        head: DraftHead | None,
        load_draft: Callable[[], Target | None],
        costs: Costs | None = None,
    ) -> None:
        self.target = target
        self.tokenizer = tokenizer
        self.head = head
        self.fim = fim.detect(tokenizer)
        self.pace = Pace(target)
        self._load_draft = load_draft
        self._known_costs = costs

    @property
    def head_name(self) -> str | None:
        """The draft head's name, where there is one."""
        return None if self.head is None else self.head.spec.name

    def session(self, method: str) -> Session:
        """A fresh session.

        Raises:
            UserError: the method needs a head or a draft model that is not here.
        """
        draft = self._draft if method == "sps" else None
        costs = self._costs if method == "adaptive" else None
        return Session(self.target, make_drafter(method, self.target, head=self.head, draft=draft, costs=costs))

    @cached_property
    def _costs(self) -> Costs:
        return self._known_costs or costs_of(self.target, self.head)

    @cached_property
    def _draft(self) -> Target | None:
        return self._load_draft()


Loader = Callable[[Choice, Progress], Engine]
_ON_CPU = "the GPU ran out of memory: completions are made on the CPU until the daemon is restarted."


def load_engine(choice: Choice, progress: Progress) -> Engine:
    """Load what was chosen.

    Raises:
        UserError: the model or a head that was named is missing or unusable.
    """
    loaded = load(choice.name, choice.precision, choice.device, progress=progress)
    spec = loaded.target.spec
    head = find_head(choice.head, loaded.target)
    draft = choice.draft_name

    def load_draft() -> Target | None:
        return None if draft is None else load(draft, spec.precision, str(spec.device)).target

    return Engine(loaded.target, loaded.tokenizer, head, load_draft)


class Host:
    """Holds at most one engine. Loading and freeing are the scheduler's thread's; facts may be read from any."""

    def __init__(self, choice: Choice, loader: Loader = load_engine) -> None:
        self.choice = choice
        self.engine: Engine | None = None
        self.loading = False
        self.trouble = ""
        """why it does not run where it should, or at all"""
        self._on_cpu = False
        self._loader = loader

    @property
    def device_memory_bytes(self) -> int:
        """What the process holds of the GPU's memory; 0 where the model is not on one."""
        device = None if self.engine is None else self.engine.target.spec.device
        return torch.cuda.memory_reserved(device) if device is not None and device.type == "cuda" else 0

    @property
    def on_cpu(self) -> bool:
        """Whether the model is there, and on the CPU."""
        return self.engine is not None and self.engine.target.spec.device.type == "cpu"

    def ensure(self, progress: Progress) -> Engine:
        """The engine, loaded now if it is not.

        Raises:
            UserError: it cannot be loaded.
            torch.cuda.OutOfMemoryError: neither on the GPU nor, which would be odd, on the CPU.
        """
        if self.engine is None:
            self.loading = True
            try:
                self.engine = self._load(progress)
            except UserError as error:
                self.trouble = str(error)
                raise
            finally:
                self.loading = False
            self.trouble = _ON_CPU if self._on_cpu else ""
        return self.engine

    def choose(self, choice: Choice) -> None:
        """Host another model from the next `ensure` on."""
        self.unload()
        self.choice, self.trouble, self._on_cpu = choice, "", False

    def unload(self) -> None:
        """Free the engine; whoever still holds one of its sessions keeps it alive."""
        self.engine = None
        free_memory()

    def to_cpu(self) -> bool:
        """After a GPU ran out of memory: host the model on the CPU; False where it is there already."""
        if self.on_cpu:
            return False
        self._on_cpu, self.trouble = True, _ON_CPU
        self.unload()
        return True

    def _load(self, progress: Progress) -> Engine:
        on_cpu = replace(self.choice, device="cpu", precision="auto")
        if self._on_cpu:
            return self._loader(on_cpu, progress)
        try:
            return self._loader(self.choice, progress)
        except torch.cuda.OutOfMemoryError:
            self.to_cpu()
        return self._loader(on_cpu, progress)


def free_memory() -> None:
    """Give memory that nothing refers to back to the GPU and to the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone keeps freed pages, and has it
        if trim is not None:
            trim(0)


def check_method(method: str, engine: Engine) -> str:
    """What a method means for an engine.

    Raises:
        UsageError: it needs a draft head and none fits.
    """
    resolved = resolve_method(method)
    if resolved in HEAD_METHODS and engine.head is None:
        raise UsageError(
            f"{resolved} drafts with an EAGLE head, and none was found for {engine.target.spec.name}: "
            "set model.head, or method ngram"
        )
    return resolved
