"""Every setting: its name, type, bounds, default and meaning, declared once.

The loader checks against these classes, `config.example.toml` is written from them, and the rest of the program reads
its settings as their instances. A key is `section.name`; its bounds and meaning stand in its `Meta`. What a project's
own file may do with a key is in `Meta.extra["project"]`: "never", "add" (a list that it may only lengthen) or "name"
(a registry name, no path); without one it may set the key.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from assistant.config.overrides import Override, in_force, matches_any

VERSION = 1
"""of this declaration; a file may say which it was written for"""

Switch = Literal["auto", "on", "off"]
Multiline = Literal["auto", "always", "never"]
Method = Literal["auto", "plain", "ngram", "sps", "eagle1", "eagle2", "best-first", "hybrid", "adaptive"]
_NEVER: dict[str, Any] = {"project": "never"}
_NAME: dict[str, Any] = {"project": "name"}
_ADD: dict[str, Any] = {"project": "add"}

SECRETS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.tfstate"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".htpasswd"),
    *("credentials", "credentials.json", "secrets.json", "secrets.toml", "secrets.y*ml", ".git-credentials"),
    *(".ssh/", ".aws/", ".gnupg/", ".kube/"),
)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the file; its docstring is the table's heading in the example."""


class Model(Section, frozen=True):
    """The model, where it computes, and who drafts for it. A project names models as the registry does."""

    name: Annotated[
        str, Meta(min_length=1, max_length=4096, description="Registry name, GGUF file or model folder.", extra=_NAME)
    ] = "qwen2.5-coder-0.5b"
    head: Annotated[
        str, Meta(max_length=4096, description='Draft head; "" is the one shipped for the model.', extra=_NAME)
    ] = ""
    draft: Annotated[
        str,
        Meta(max_length=4096, description='Draft model of method "sps"; "" is the family\'s smaller one.', extra=_NAME),
    ] = ""
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16", "int8"],
        Meta(description="auto: int8 on a CPU, bfloat16 on a GPU.", extra=_NEVER),
    ] = "auto"
    device: Annotated[
        str,
        Meta(
            pattern=r"^(auto|cpu|cuda(:[0-9]{1,3})?|mps)$",
            description="Where to compute: auto, cpu, cuda, cuda:N or mps.",
            extra=_NEVER,
        ),
    ] = "auto"
    method: Annotated[
        Method,
        Meta(description="How tokens are drafted; auto: by head and retrieval, as much as pays on this machine."),
    ] = "auto"


class Tree(Section, frozen=True):
    """Bounds of the draft tree that each step verifies."""

    nodes: Annotated[
        int,
        Meta(ge=0, le=512, description="Most draft tokens to verify in a step; 0: as fits the method (8; auto: 32)."),
    ] = 0
    depth: Annotated[
        int, Meta(ge=0, le=64, description="Most draft tokens on one path; 0: as fits the method (6; auto: 16).")
    ] = 0
    width: Annotated[int, Meta(ge=0, le=64, description="Most nodes expanded at once; 0: as fits the method (8).")] = 0
    threshold: Annotated[float, Meta(ge=0, le=1, description="Least path value of a node; 0 drops none.")] = 0.0
    calibrated: Annotated[bool, Meta(description="Rank nodes by the head's calibration, where it has one.")] = True


class Completion(Section, frozen=True):
    """What a completion may cost, how it is drawn, and when it is shown."""

    max_tokens: Annotated[int, Meta(ge=1, le=32768, description="Most tokens of a completion.")] = 128
    temperature: Annotated[float, Meta(ge=0, le=10, description="0 takes the best token each time.")] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1, description="Sample from the tokens that make up this mass.")] = 1.0
    top_k: Annotated[int, Meta(ge=0, le=2**31, description="Sample from this many tokens; 0: from all.")] = 0
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="Of sampling.")] = 0
    multiline: Annotated[
        Multiline, Meta(description="Whether a completion may go on past its line; auto: by the syntax at the cursor.")
    ] = "auto"
    min_confidence: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Show nothing whose tokens' mean probability (geometric) is below this; 0 shows everything.",
        ),
    ] = 0.0
    deadline_ms: Annotated[
        int, Meta(ge=0, le=600_000, description="End with what there is after this long; 0: no deadline.")
    ] = 0


class Window(Section, frozen=True):
    """How much of the file around the cursor the model reads."""

    prefix: Annotated[int, Meta(ge=1, le=131_072, description="Most tokens before the cursor.")] = 768
    suffix: Annotated[
        int, Meta(ge=0, le=131_072, description="Most tokens after it; read anew with every key, so keep it short.")
    ] = 128


class Context(Section, frozen=True):
    """What the model reads besides the file itself. Nothing of it leaves the machine."""

    enabled: Annotated[bool, Meta(description="Read other files of the workspace as context.")] = True
    max_tokens: Annotated[int, Meta(ge=0, le=131_072, description="Most tokens of it in a prompt; 0: none.")] = 0
    index: Annotated[bool, Meta(description="Index the workspace; otherwise open documents only.")] = True
    exclude: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1024)], ...],
        Meta(
            max_length=1000,
            description="Files never read as context, as in .gitignore, which is honoured too. A project may only add.",
            extra=_ADD,
        ),
    ] = ()
    secret_patterns: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1024)], ...],
        Meta(
            max_length=1000,
            description="Files neither read as context nor completed in, as in .gitignore. A project may only add.",
            extra=_ADD,
        ),
    ] = SECRETS
    max_file_kb: Annotated[int, Meta(ge=1, le=65_536, description="Larger files are not read as context.")] = 512

    def is_secret(self, path: str) -> bool:
        """Whether a file is neither read nor completed in."""
        return matches_any(self.secret_patterns, "/", path)

    def may_read(self, path: str) -> bool:
        """Whether a file may be read besides the one that is edited."""
        return not (self.is_secret(path) or matches_any(self.exclude, "/", path))


class Daemon(Section, frozen=True):
    """The background service. None of it can stand in a project's file."""

    idle_unload_minutes: Annotated[
        float,
        Meta(ge=0, le=525_600, description="Free the model after this long without a request; 0: never.", extra=_NEVER),
    ] = 20.0
    idle_exit_minutes: Annotated[
        float, Meta(ge=0, le=525_600, description="End after this long without a client; 0: never.", extra=_NEVER)
    ] = 240.0
    memory_mb: Annotated[
        int, Meta(ge=0, le=2**24, description="Memory that the process should stay below; 0: no limit.", extra=_NEVER)
    ] = 0
    cache_mb: Annotated[
        int, Meta(ge=0, le=2**24, description="Of which for keys and values of documents.", extra=_NEVER)
    ] = 512
    documents: Annotated[
        int, Meta(ge=1, le=1024, description="Most documents whose keys and values are kept.", extra=_NEVER)
    ] = 8
    max_queue: Annotated[
        int, Meta(ge=1, le=10_000, description="Most requests that wait; others are refused as busy.", extra=_NEVER)
    ] = 64
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="How much is logged; never code, at any level.", extra=_NEVER),
    ] = "info"
    adaptive_load: Annotated[bool, Meta(description="Shrink draft trees while requests wait.", extra=_NEVER)] = True
    prefetch: Annotated[
        bool, Meta(description="Prepare, while nothing waits, what follows an accepted suggestion.", extra=_NEVER)
    ] = True


class Editor(Section, frozen=True):
    """How suggestions appear while typing. Of it, only `enabled` can stand in a project's file."""

    enabled: Annotated[bool, Meta(description="Whether there are suggestions at all.")] = True
    debounce_ms: Annotated[
        int, Meta(ge=0, le=10_000, description="Wait this long after a key before asking.", extra=_NEVER)
    ] = 30
    debounce_max_ms: Annotated[
        int, Meta(ge=0, le=10_000, description="Wait at most this long when completions are slow.", extra=_NEVER)
    ] = 300
    inline: Annotated[Switch, Meta(description="Ghost text; auto: where the editor can show it.", extra=_NEVER)] = (
        "auto"
    )
    completion_menu: Annotated[
        Switch, Meta(description="Entries in the completion menu; auto: where there is no ghost text.", extra=_NEVER)
    ] = "auto"
    min_prefix: Annotated[
        int,
        Meta(
            ge=0, le=1000, description="Characters that a word needs before the menu is filled unasked.", extra=_NEVER
        ),
    ] = 0
    inside_words: Annotated[
        bool, Meta(description="Suggest also where the word goes on behind the cursor.", extra=_NEVER)
    ] = False


class Learning(Section, frozen=True):
    """What the draft head may learn from. None of it can stand in a project's file."""

    enabled: Annotated[
        bool, Meta(description="Keep verified steps as token ids, on this machine, to train the head on.", extra=_NEVER)
    ] = False
    max_mb: Annotated[
        int, Meta(ge=1, le=65_536, description="Most room that they take; the oldest go first.", extra=_NEVER)
    ] = 256


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A whole configuration: immutable, hashable, valid."""

    model: Model = Model()
    tree: Tree = Tree()
    completion: Completion = Completion()
    window: Window = Window()
    context: Context = Context()
    daemon: Daemon = Daemon()
    editor: Editor = Editor()
    learning: Learning = Learning()
    overrides: tuple[Override, ...] = ()
    """what `languages` and `files` set, in the order in which it applies"""

    def for_document(self, path: str | None, language: str | None = None) -> "Settings":
        """The settings of one document: what its language and the globs that match its path set, is in place.

        `language` is an LSP language id; None: by the file's name. The result has no overrides left.
        """
        if not self.overrides:
            return self
        found: dict[str, Any] = {**self.sections(), "overrides": ()}
        for (section, name), override in in_force(self.overrides, path, language).items():
            found[section] = msgspec.structs.replace(found[section], **{name: override.value})
        return Settings(**found)

    def sections(self) -> dict[str, Section]:
        """The sections by name."""
        return {name: getattr(self, name) for name in SECTIONS}


SECTIONS: dict[str, type[Section]] = {
    field.name: field.type for field in msgspec.structs.fields(Settings) if field.name != "overrides"
}
"""name -> class, in the order of the file"""
