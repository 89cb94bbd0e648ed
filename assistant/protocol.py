"""Every message between the daemon and its clients, typed and versioned.

Requests are JSON bodies of POSTs; answers are JSON, or server-sent events whose `data` is one JSON message each. Every
event names its type in the field `type`. A client says the version it speaks in the header `eagle-assist-protocol`; the
daemon refuses others with 409 and its own version, so that a client can restart it.

Text has line feeds as line ends. Offsets count characters (Unicode code points) from 0. Times are milliseconds.

This module knows nothing of sockets, of torch or of the engine; whoever reads messages needs it alone.
"""

from typing import Literal

import msgspec

VERSION = 1
HEADER = "eagle-assist-protocol"
CLIENT_HEADER = "eagle-assist-client"
"""what `Welcome` gave, with every request: a sign of life"""


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request or a part of one: an unknown field is an error."""


class Answer(msgspec.Struct, frozen=True):
    """What the daemon answers, or a part of it: fields that a client does not know are left out by it."""


class Event(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """What the daemon says in a stream; fields that a client does not know are left out by it."""


# --- requests -------------------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True):
    """POST /v1/hello: the first thing that a client says; answered with `Welcome`."""

    client: str
    """what it is called where clients are listed: `nvim`, `vscode`, `complete`"""
    version: str
    """the program's version"""
    workspace: tuple[str, ...] = ()
    """root folders, as paths"""


class Shape(Message, frozen=True, kw_only=True):
    """Bounds of the draft tree; None is the configuration's."""

    nodes: int | None = None
    depth: int | None = None
    width: int | None = None
    threshold: float | None = None
    calibrated: bool | None = None


class Options(Message, frozen=True, kw_only=True):
    """What one completion may cost; None is the configuration's for the document."""

    method: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    shape: Shape = Shape()
    policy: bool = True
    """whether the text policy ends and filters what is written"""
    multiline: bool | None = None
    """False: one line at most; None: by the rule of the text policy"""


class Edit(Message, frozen=True, kw_only=True):
    """Characters `start` to `end` are replaced by `text`."""

    start: int
    end: int
    text: str


class Complete(Message, frozen=True, kw_only=True):
    """POST /v1/complete: continue a text at a cursor; answered with events, the last of them `Done` or `Failed`.

    The text is that of an open document at the version given, or `prefix` and `suffix` themselves. Edits that lead to
    that version may come along, so that a key costs one request: they are made first, and stay made whatever becomes of
    the completion. A document that is at `version` already has them; one that is at neither is refused as stale.
    """

    path: str = ""
    """names the document: the newest request of a client's document supersedes the one before"""
    version: int | None = None
    """of the open document; None where the text comes along"""
    since: int | None = None
    """the version that `edits` begin with; None where there are none"""
    edits: tuple[Edit, ...] = ()
    """one after the other, from `since` to `version`"""
    cursor: int | None = None
    """in the open document"""
    prefix: str | None = None
    suffix: str = ""
    language: str | None = None
    """an LSP language id; None: by the file's name"""
    client: str = ""
    """what `Welcome` gave"""
    options: Options = Options()
    priority: Literal["interactive", "prefetch"] = "interactive"
    deadline_ms: float | None = None
    """give up with what there is after this long"""
    typed: bool = True
    """whether an earlier suggestion that is being typed along may be the answer; False: always ask the model"""
    anchored: bool = True
    """whether the prompt may be one that grows while somebody types; False: the one of this place alone"""


class Cancel(Message, frozen=True, kw_only=True):
    """POST /v1/cancel: withdraw a request; also what closing its stream does."""

    request: str


class OpenDocument(Message, frozen=True, kw_only=True):
    """POST /v1/documents/open."""

    client: str
    path: str
    version: int
    text: str
    language: str | None = None


class ChangeDocument(Message, frozen=True, kw_only=True):
    """POST /v1/documents/change: edits, one after the other, lead from the version before to `version`."""

    client: str
    path: str
    version: int
    edits: tuple[Edit, ...]


class CloseDocument(Message, frozen=True, kw_only=True):
    """POST /v1/documents/close."""

    client: str
    path: str


class Feedback(Message, frozen=True, kw_only=True):
    """POST /v1/feedback: what became of a suggestion."""

    request: str
    outcome: Literal["shown", "accepted", "partly", "rejected", "kept"]
    characters: int = 0
    """accepted so far"""


SettingValues = dict[str, str | int | float | bool | list[str]]
"""settings by dotted key"""


class Configure(Message, frozen=True, kw_only=True):
    """POST /v1/configure: settings of this client (an editor's), by dotted key; they lie above the files'."""

    client: str
    settings: SettingValues


class Leave(Message, frozen=True, kw_only=True):
    """POST /v1/leave: a client goes; its documents are closed and its requests cancelled."""

    client: str


class Load(Message, frozen=True, kw_only=True):
    """POST /v1/load: load the model now, another one where it is named; answered with `Status`."""

    model: str | None = None
    """None: the one that is configured, or was loaded last"""
    head: str | None = None
    """None: the model's own"""


class Unload(Message, frozen=True, kw_only=True):
    """POST /v1/unload: give the model's memory back; the next completion loads it again. Answered with `Status`."""


class Shutdown(Message, frozen=True, kw_only=True):
    """POST /v1/shutdown: end; running completions are finished first when `drain`."""

    drain: bool = True


# --- answers --------------------------------------------------------------------------------------------------------


class Welcome(Answer, frozen=True, kw_only=True):
    """The answer to `Hello`."""

    client: str
    """an id for later requests"""
    version: str
    protocol: int = VERSION
    pid: int


class Refusal(Answer, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 and above."""

    code: str
    """stable, for programs: bad_message, version, unknown_document, stale, busy, too_large, config, ..."""
    message: str
    """one sentence for people: what, where, remedy"""


class Tree(Answer, frozen=True, kw_only=True):
    """A verified draft tree; node 0 is the root, parents come before their children."""

    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    parents: tuple[int, ...]
    values: tuple[float, ...]
    """log of the path value"""
    origins: tuple[str, ...]
    accepted: tuple[int, ...]
    """nodes of the accepted path, root left out"""


class Choice(Answer, frozen=True, kw_only=True):
    """What the tree policy saw and what it chose for a step."""

    nodes: int
    depth: int
    width: int
    queue: int = 0
    """requests that waited"""
    reason: str = ""
    expected_tokens: float = 0.0
    """of the step, before it was verified; 0 where the tree does not adapt"""
    expected_ms: float = 0.0
    """of the step, by what was measured on this machine"""
    levels: int = 0
    """that the draft head was asked for"""
    trust: float = 1.0
    """what the head's confidences are multiplied by, for this text"""


class Step(Event, frozen=True, kw_only=True):
    """One step of a completion: the prefill's, then one a verification."""

    request: str
    index: int
    text: str
    """what became certain with it and may be shown"""
    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    """one a token"""
    origins: tuple[str, ...]
    """one a token: head, draft, retrieval, correction, bonus, target"""
    tree: Tree | None = None
    choice: Choice | None = None
    prefill_ms: float = 0.0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    prompt_tokens: int = 0
    """tokens of the prompt, in the prefill's step"""
    reused: int = 0
    """of which this many were still in the cache"""
    draft_reused: int = 0
    """and this many in the drafter's own (all, where it keeps none)"""
    forwards: int = 1
    """forwards of the target for it, the prefill's not counted"""
    finish: str | None = None
    """why the model ended, in its last step: stop, length"""
    anew: bool = False
    """its tokens are another text, which takes the place of that of the steps before"""


class Progress(Event, frozen=True, kw_only=True):
    """Something that takes long goes on before the completion: a model is joined, converted, loaded."""

    request: str
    stage: str
    done: int
    total: int


class Begun(Event, frozen=True, kw_only=True):
    """The request has its place in the queue."""

    request: str
    model: str
    method: str
    queue: int = 0


class Done(Event, frozen=True, kw_only=True):
    """The last event of a completion that came to an end."""

    request: str
    text: str
    """the whole text to show"""
    finish: str
    """stop, length, filtered, cancelled, superseded, deadline"""
    reason: str = ""
    """where nothing is shown, or less than was written: why, in words"""
    source: Literal["model", "typed"] = "model"
    """typed: answered from an earlier suggestion that the user is typing along"""
    tokens: tuple[int, ...] = ()
    confidence: float = 1.0
    """geometric mean of the target's probabilities of the tokens, where known"""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0


class Failed(Event, frozen=True, kw_only=True):
    """The last event of a completion that could not be made."""

    request: str
    code: str
    message: str


class Observed(Event, frozen=True, kw_only=True):
    """GET /v1/steps, a stream: a step of some completion, and whose it is."""

    client: str
    """its name, not its id"""
    document: str
    method: str
    step: Step
    before: str = ""
    """the end of the text before the cursor (4,000 characters at most), in a completion's first step alone"""
    after: str = ""
    """the beginning of the text after it, likewise"""


class Settled(Event, frozen=True, kw_only=True):
    """GET /v1/steps: a completion of some client ended, or feedback on one came."""

    client: str
    document: str
    request: str
    outcome: str
    """a finish of `Done`, `failed`, or an outcome of `Feedback`"""
    characters: int = 0
    queue_ms: float = 0.0
    """of a completion that ended: how long it waited for its turn,"""
    total_ms: float = 0.0
    """and from the request's arrival to its last event"""


class Missed(Event, frozen=True, kw_only=True):
    """GET /v1/steps: the reader was too slow, and so many of the oldest events were left out before this."""

    count: int


class ClientInfo(Answer, frozen=True, kw_only=True):
    """A client as `Status` lists it."""

    name: str
    documents: tuple[str, ...] = ()
    requests: int = 0
    shown: int = 0
    accepted: int = 0


class Status(Answer, frozen=True, kw_only=True):
    """GET /v1/status."""

    running: bool = True
    pid: int
    version: str
    protocol: int = VERSION
    socket: str
    model: str
    head: str | None = None
    device: str
    precision: str
    method: str
    loaded: bool
    plain_ms: float = 0.0
    """milliseconds of a plain step by the costs measured on this machine (0: nobody measured them)"""
    draft: str | None = None
    """the smaller model that drafts by method sps; None: there is none, and the method cannot be had"""
    models: tuple[str, ...] = ()
    """names of the models on this machine that may be loaded; files and folders may be, too"""
    heads: tuple[str, ...] = ()
    """likewise of draft heads"""
    state: str
    """ready, loading, unloaded, degraded, draining"""
    message: str = ""
    """why it is degraded, or what it is doing"""
    queue: int = 0
    clients: tuple[ClientInfo, ...] = ()
    documents: int = 0
    memory_bytes: int = 0
    """resident memory of the process"""
    cache_bytes: int = 0
    """of which keys and values"""
    device_memory_bytes: int = 0
    """memory of the GPU that the process holds (0: the model is not on one)"""
    uptime_s: float = 0.0
    completions: int = 0
    steps: int = 0
    superseded_steps: int = 0
    """steps that ran for a request after it was superseded or cancelled"""


CompletionEvent = Step | Progress | Begun | Done | Failed
FeedEvent = Observed | Settled | Missed
