"""What one request asks of the engine: its own options over the document's settings."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

from assistant import protocol
from assistant.config import Settings
from assistant.daemon.engine_room import Text
from assistant.daemon.host import Engine, check_method
from assistant.daemon.prompt import Window
from assistant.engine.methods import bounds_of
from assistant.engine.tree import TreeShape
from assistant.engine.types import GenerateOptions, Sampling

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A method by its resolved name, the engine's options, and what may be read."""

    method: str
    options: GenerateOptions
    window: Window
    room: int
    """most tokens of a prompt"""


def settings_of(text: Text) -> Settings:
    """The settings of a document; the defaults where it came without."""
    return text.settings if isinstance(text.settings, Settings) else Settings()


def wanted(request: protocol.Complete, text: Text, engine: Engine) -> Wanted:
    """Options that are None are those of the settings.

    Raises:
        UsageError: the method cannot be had with this model.
    """
    settings, asked = settings_of(text), request.options
    written = settings.completion
    method = check_method(asked.method or settings.model.method, engine)
    max_tokens = _first(asked.max_tokens, written.max_tokens)
    context = engine.target.spec.max_positions
    room = context - min(max_tokens, context // 2)
    window = Window(settings.window.prefix, settings.window.suffix).within(room)
    options = GenerateOptions(
        max_tokens=max_tokens,
        sampling=Sampling(
            _first(asked.temperature, written.temperature),
            _first(asked.top_p, written.top_p),
            _first(asked.top_k, written.top_k),
            _first(asked.seed, written.seed),
        ),
        tree=_shape(asked.shape, settings, bounds_of(method)),
        stop_ids=engine.tokenizer.eos_ids,
    )
    return Wanted(method, options, window, room)


def multiline(request: protocol.Complete, text: Text) -> bool | None:
    """Whether more than one line may be written; None: by the text policy's rule."""
    rule = {"auto": None, "always": True, "never": False}[settings_of(text).completion.multiline]
    return rule if request.options.multiline is None else request.options.multiline


def answer_key(request: protocol.Complete, text: Text, model: Hashable) -> Hashable:
    """Whatever decides a completion besides its text: two requests with one key have the same answer.

    Verification is lossless, so the method and its tree are not part of it.
    """
    settings, asked = settings_of(text), request.options
    return (
        model,
        settings.completion,
        settings.window,
        settings.context,
        text.language,
        (asked.max_tokens, asked.temperature, asked.top_p, asked.top_k, asked.seed),
        (asked.policy, asked.multiline),
    )


def _shape(asked: protocol.Shape, settings: Settings, own: TreeShape) -> TreeShape:
    """The request's bounds over the settings', and the method's `own` where those leave it to the method."""
    tree = settings.tree
    return TreeShape(
        nodes=_first(asked.nodes, tree.nodes or own.nodes),
        depth=_first(asked.depth, tree.depth or own.depth),
        width=_first(asked.width, tree.width or own.width),
        threshold=_first(asked.threshold, tree.threshold),
        calibrated=_first(asked.calibrated, tree.calibrated),
    )


def _first(asked: _T | None, otherwise: _T) -> _T:
    return otherwise if asked is None else asked
