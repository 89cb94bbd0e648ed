"""How long the first text takes: where no daemon runs, where its model was unloaded, and where it is loaded.

Times count from asking. Each completion is of a document that the daemon has not read, so that its prompt is computed.
The files of program and model were read before, so they come from the system's cache.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter, sleep
from typing import Any

from assistant import protocol
from assistant.bench.stats import spread
from assistant.client import Client, launch
from assistant.endpoint import default_endpoint
from assistant.errors import DaemonError, DaemonRunningError

SITUATIONS = ("no daemon runs", "the model is unloaded", "the model is loaded")
_NAME = "bench start"
_LOOK_S, _PATIENCE_S = 0.02, 60.0


@dataclass(frozen=True, slots=True)
class Waited:
    """Milliseconds from asking."""

    answered_ms: float
    """until the daemon had the request"""
    ready_ms: float
    """until the model was there, and read the prompt"""
    first_text_ms: float
    full_text_ms: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where is completed, and how much."""

    name: str
    """of the file; its ending tells the language"""
    text: str
    cursor: int
    max_tokens: int


def measure(
    place: Place, repeat: int, progress: Callable[[int, int], None], command: Sequence[str] | None = None
) -> dict[str, Any]:
    """Start a daemon, unload its model, use it and end it, `repeat` times: the JSON document of `bench start`.

    Args:
        place: what is asked for.
        repeat: how often.
        progress: told how often so far.
        command: what starts a daemon; this program by default.

    Raises:
        DaemonRunningError: one runs already.
        DaemonError: it could not be started, wrote nothing there, or did not end.
    """
    if default_endpoint().reachable():
        raise DaemonRunningError("a daemon runs, and this measures how one starts: `eagle-assist daemon stop` ends it.")
    found: list[tuple[Waited, ...]] = []
    for number in range(repeat):
        waits, status = _once(place, number, command)
        found.append(waits)
        progress(number + 1, repeat)
    rows = []
    for situation, waits in zip(SITUATIONS, zip(*found, strict=True), strict=True):
        times = [asdict(waited) for waited in waits]
        figures = {name: spread([row[name] for row in times]).to_json() for name in times[0]}
        rows.append({"situation": situation, **figures})
    about = {"model": status.model, "precision": status.precision, "method": status.method}
    return {**about, "max_tokens": place.max_tokens, "repeat": repeat, "rows": rows}


def _once(place: Place, number: int, command: Sequence[str] | None) -> tuple[tuple[Waited, ...], protocol.Status]:
    begun = perf_counter()
    with Client.connect(_NAME, command=command) as client:
        try:
            cold = _ask(client, place, f"{number}-cold", begun)
            client.unload()
            _wait_until(lambda: not client.status().loaded, "its model stays loaded")
            unloaded = _ask(client, place, f"{number}-unloaded", perf_counter())
            loaded = _ask(client, place, f"{number}-loaded", perf_counter())
            return (cold, unloaded, loaded), client.status()
        finally:
            client.shutdown(drain=False)
            if not launch.ended(default_endpoint(), _PATIENCE_S):
                raise DaemonError("the daemon does not end; see `eagle-assist logs`.")


def _ask(client: Client, place: Place, folder: str, begun: float) -> Waited:
    request = protocol.Complete(
        path=f"{folder}/{place.name}",
        prefix=place.text[: place.cursor],
        suffix=place.text[place.cursor :],
        options=protocol.Options(max_tokens=place.max_tokens),
        typed=False,
    )
    answered = ready = first = None
    for event in client.complete(request):
        now = (perf_counter() - begun) * 1e3
        if isinstance(event, protocol.Begun):
            answered = now
        elif isinstance(event, protocol.Step):
            ready = now if ready is None else ready
            first = now if first is None and event.text else first
        elif isinstance(event, protocol.Failed):
            raise DaemonError(event.message)
    if answered is None or ready is None or first is None:
        raise DaemonError("the model wrote nothing there that may be shown: choose another place.")
    return Waited(answered, ready, first, now)


def _wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = perf_counter() + _PATIENCE_S
    while not condition():
        if perf_counter() > deadline:
            raise DaemonError(f"the daemon does not do what it was asked: {otherwise}; see `eagle-assist logs`.")
        sleep(_LOOK_S)
