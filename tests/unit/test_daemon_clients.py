"""Who counts as a client: those that are heard, whatever became of those that took no leave."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from assistant import protocol
from assistant.client import Client
from assistant.config import Rank, mapping_layer
from assistant.daemon import clients
from assistant.daemon.clients import KNOWN_S, LISTED_S, Clients
from assistant.daemon.lifecycle import Limits
from assistant.daemon.pace import SAMPLES
from assistant.daemon.shelf import FRESH_S, Names, Shelf, look
from assistant.engine import cost
from assistant.engine.measure import measure
from assistant.errors import DaemonError, RefusedError
from models.catalog import DEFAULT_MODEL
from tests.support.daemons import Running, scripted_daemon
from tests.support.rooms import Clock, Room, tiny_engine
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))


def greeted(known: Clients, name: str = "nvim") -> str:
    return known.welcome(protocol.Hello(client=name, version="1"))[0].id


def names(known: Clients) -> list[str]:
    return [client.name for client in known.present()]


def test_a_client_that_was_killed_is_not_listed_after_a_while_and_forgotten_after_a_day() -> None:
    clock = Clock()
    known = Clients(clock=clock)
    killed, living = greeted(known, "killed"), greeted(known, "living")
    clock.now = LISTED_S
    assert names(known) == ["killed", "living"]
    known.hear(living)
    clock.now += 1
    assert names(known) == ["living"]
    assert known.get(killed).name == "killed", "it is heard again"
    assert names(known) == ["living", "killed"]
    clock.now += KNOWN_S
    known.hear(living)
    assert known.expired() == ()
    clock.now += 1
    assert known.expired() == (killed,)


def test_a_client_with_an_open_stream_is_there_however_silent_it_is() -> None:
    clock = Clock()
    known = Clients(clock=clock)
    watching = greeted(known, "tui")
    known.streams(watching, 1)
    clock.now = KNOWN_S * 2
    assert names(known) == ["tui"]
    assert known.expired() == ()
    known.streams(watching, -1)
    clock.now += LISTED_S + 1
    assert names(known) == []


def test_signs_of_life_of_strangers_are_nothing() -> None:
    known = Clients()
    known.hear("nobody")
    known.streams("nobody", 1)
    assert names(known) == []
    with pytest.raises(RefusedError):
        known.get("nobody")


def connected(daemon: Running, name: str) -> Client:
    return Client.connect(name, start=False, endpoint=daemon.endpoint)


def watch(client: Client) -> None:
    with contextlib.suppress(DaemonError):  # it ends with the daemon
        list(client.steps())


def test_whoever_asks_for_the_status_or_watches_is_listed_and_whoever_fell_silent_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with scripted_daemon() as daemon, connected(daemon, "tui") as tui, connected(daemon, "watch") as watching:
        connected(daemon, "killed")
        threading.Thread(target=watch, args=(watching,), daemon=True).start()
        until(lambda: bool(daemon.room._observers))

        def listed() -> set[str]:
            return {info.name for info in tui.status().clients}

        assert listed() == {"tui", "watch", "killed"}
        monkeypatch.setattr(clients, "LISTED_S", 0.2)
        until(lambda: listed() == {"tui", "watch"})
        tui.shutdown(drain=False)


def test_what_a_forgotten_client_had_is_freed_and_its_settings_are_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(path: str, language: str | None, settings: protocol.SettingValues) -> Any:
        del path, language
        mapping_layer(Rank.CLIENT, settings, "client")
        return settings

    quick = Limits(drain_s=2.0, idle_unload_s=0.2)
    with scripted_daemon(resolve=resolve, limits=quick) as daemon, connected(daemon, "nvim") as client:
        client.configure({"completion.max_tokens": 5})
        client.open_document("a.py", 1, "x")
        before = client.welcome.client
        monkeypatch.setattr(clients, "KNOWN_S", -1.0)
        until(lambda: (before, None) in daemon.room.forgotten)
        monkeypatch.setattr(clients, "KNOWN_S", KNOWN_S)
        list(client.complete(protocol.Complete(prefix="x")))
        assert client.welcome.client != before
        assert daemon.room.texts[-1].settings == {"completion.max_tokens": 5}
        assert client.status().documents == 0


def test_the_real_room_measures_a_plain_step_while_nobody_waits() -> None:
    engine = tiny_engine()
    assert engine.pace.plain_ms == 0.0
    taken = [engine.pace.sample() for _ in range(SAMPLES + 3)]
    assert taken == [True] * (SAMPLES + 1) + [False] * 2
    assert engine.pace.plain_ms > 0.0


def test_costs_that_were_measured_before_make_that_needless() -> None:
    first = tiny_engine()
    costs = measure(first.target, None, context=8, repeat=1, sizes=(1, 2))
    cost.save(costs)
    again = tiny_engine()
    assert again.pace.plain_ms == costs.verify(1)
    assert not again.pace.sample()


def test_the_status_tells_what_can_be_chosen_and_what_is_not_there() -> None:
    room = Room()
    room.ask("x = ")
    room.settle()
    said = room.scheduler.status()
    assert said.draft is None
    assert said.device_memory_bytes == 0, "the model is on the CPU"
    assert said.heads
    assert look() == Names(said.models, said.heads)


def test_the_shelf_looks_again_only_after_a_while() -> None:
    clock, looks = Clock(), iter([Names((DEFAULT_MODEL,)), Names(("other",))])
    shelf = Shelf(lambda: next(looks), clock)
    assert shelf.names.models == shelf.names.models == (DEFAULT_MODEL,)
    clock.now = FRESH_S + 1
    assert shelf.names.models == ("other",)
