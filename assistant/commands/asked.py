"""What a completion on the command line is to be: its options over the configuration of its document."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from assistant.commands.opening import check_method
from assistant.commands.options import ModelOptions
from assistant.config import Settings, load
from assistant.documents import STDIN
from assistant.errors import UsageError

_KEYS = {
    "model": "model.name",
    "head": "model.head",
    "draft": "model.draft",
    "precision": "model.precision",
    "device": "model.device",
    "method": "model.method",
    "nodes": "tree.nodes",
    "depth": "tree.depth",
    "width": "tree.width",
    "threshold": "tree.threshold",
    "calibrated": "tree.calibrated",
    "max_tokens": "completion.max_tokens",
    "temperature": "completion.temperature",
    "top_p": "completion.top_p",
    "top_k": "completion.top_k",
    "seed": "completion.seed",
}
"""option -> setting"""


@dataclass(frozen=True, slots=True)
class Asked:
    """All that decides a completion besides its text."""

    settings: Settings
    draft: str | None
    """the draft model, for the method sps"""
    shared: bool
    """whether model and device are those that the daemon hosts by its configuration"""

    @property
    def method(self) -> str:
        """The method as it was asked for; it may be `auto`."""
        return self.settings.model.method

    @property
    def options(self) -> ModelOptions:
        """The same for the in-process path."""
        return options_of(self.settings)

    def refuse_secrets(self, path: str) -> None:
        """See to it that nothing is completed in a file that may hold secrets.

        Raises:
            UsageError: `path` is such a file.
        """
        if path != STDIN and self.settings.context.is_secret(str(Path(path).absolute())):
            raise UsageError(
                f"{path} may hold secrets, so nothing is completed in it: context.secret_patterns names it, "
                "see `eagle-assist config show`."
            )


def asked(ctx: click.Context, path: str, language: str | None = None) -> Asked:
    """Options that were given win over the configuration.

    Raises:
        UsageError: options that contradict each other.
        ConfigError: a configuration file or the environment is wrong.
    """
    document = None if path == STDIN else Path(path).absolute()
    settings = load(document, command_line=given(ctx)).settings.for_document(str(document or ""), language)
    method = settings.model.method
    words: dict[str, Any] = {
        name: ctx.params[name] if _given(ctx, name) else None for name in ("model", "head", "draft")
    }
    draft = words["draft"] or (settings.model.draft or None if method == "sps" else None)
    plain = ModelOptions(settings.model.name, words["head"], "auto", "auto", None, None, None, None, None, 0)
    draft = check_method(method, plain, draft)
    hosted = load().settings.model
    mine = settings.model
    same = all(getattr(mine, name) == getattr(hosted, name) for name in ("name", "head", "precision", "device"))
    # The daemon works in another folder, where a relative path leads elsewhere.
    found_anywhere = Path(mine.name).is_absolute() or not Path(mine.name).exists()
    return Asked(settings, draft, shared=same and found_anywhere and method != "sps")


def given(ctx: click.Context) -> dict[str, Any]:
    """Dotted key -> value of the options that were given and stand for a setting."""
    return {key: ctx.params[name] for name, key in _KEYS.items() if name in ctx.params and _given(ctx, name)}


def options_of(settings: Settings) -> ModelOptions:
    """A configuration's model and tree, as the options that say the same."""
    model, tree = settings.model, settings.tree
    return ModelOptions(
        model=model.name,
        head=model.head or None,
        precision=model.precision,
        device=model.device,
        nodes=tree.nodes or None,
        depth=tree.depth or None,
        width=tree.width or None,
        threshold=tree.threshold,
        calibrated=tree.calibrated,
        seed=settings.completion.seed,
    )


def _given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
