"""The service's endpoints, through both clients, with a scripted engine."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from assistant import protocol
from assistant.client import AsyncClient, Client
from assistant.client.wire import Line
from assistant.config import Rank, mapping_layer
from assistant.daemon import stream
from assistant.errors import BusyError, RefusedError
from tests.support.daemons import Running, scripted_daemon
from tests.support.scripted_room import Script
from tests.support.waiting import until


@pytest.fixture(name="daemon")
def fixture_daemon() -> Iterator[Running]:
    with scripted_daemon() as running:
        yield running


@pytest.fixture(name="client")
def fixture_client(daemon: Running) -> Iterator[Client]:
    with connected(daemon) as client:
        yield client


def connected(daemon: Running, name: str = "test") -> Client:
    return Client.connect(name, start=False, endpoint=daemon.endpoint)


def asking(**fields: Any) -> protocol.Complete:
    return protocol.Complete(**({"path": "a.py", "prefix": "hello, ", "suffix": "world"} | fields))


def kinds(events: list[protocol.CompletionEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def code_of(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        call(*arguments, **named)
    return caught.value.code


def test_a_completion_streams_its_events_in_order(client: Client) -> None:
    events = list(client.complete(asking()))
    assert kinds(events) == ["Begun", "Step", "Step", "Step", "Done"]
    steps = [event for event in events if isinstance(event, protocol.Step)]
    assert isinstance(events[-1], protocol.Done)
    assert "".join(step.text for step in steps) == events[-1].text
    assert {event.request for event in events} == {steps[0].request}


def test_the_room_is_handed_the_text_and_whose_it_is(daemon: Running, client: Client) -> None:
    list(client.complete(asking(language="python")))
    (text,) = daemon.room.texts
    assert (text.text, text.cursor, text.path, text.language) == ("hello, world", 7, "a.py", "python")
    assert text.client == client.welcome.client
    assert text.client_name == "test"


def test_separators_that_other_lines_know_do_not_cut_an_event(client: Client) -> None:
    text = "a\u2028b\x85c\x0bd\re\n\nf\ud7ffdata: "
    assert isinstance(last := list(client.complete(asking(prefix=text)))[-1], protocol.Done)
    assert last.text == text[-12:].ljust(12)


def test_an_open_document_is_completed_at_its_version(daemon: Running, client: Client) -> None:
    client.open_document("b.py", 1, "def f():\n", "python")
    client.change_document("b.py", 2, [protocol.Edit(start=9, end=9, text="    return")])
    list(client.complete(protocol.Complete(path="b.py", version=2, cursor=19)))
    assert daemon.room.texts[-1].text == "def f():\n    return"
    assert daemon.room.texts[-1].language == "python"
    assert code_of(list, client.complete(protocol.Complete(path="b.py", version=1, cursor=0))) == "stale"
    assert code_of(list, client.complete(protocol.Complete(path="b.py", version=2, cursor=20))) == "bad_message"
    client.close_document("b.py")
    assert (client.welcome.client, "b.py") in daemon.room.forgotten
    assert code_of(client.change_document, "b.py", 3, []) == "unknown_document"


def test_edits_come_along_with_a_request_and_are_made_once(daemon: Running, client: Client) -> None:
    client.open_document("b.py", 1, "def f():\n")
    edits = (protocol.Edit(start=9, end=9, text="    x"), protocol.Edit(start=14, end=14, text="y"))
    asked = protocol.Complete(path="b.py", since=1, version=2, edits=edits, cursor=15)
    for _ in range(2):  # the answer to the first may have been lost
        list(client.complete(asked))
        assert daemon.room.texts[-1].text == "def f():\n    xy"
    late = msgspec.structs.replace(asked, version=3)
    assert code_of(list, client.complete(late)) == "stale", "these edits are not of the text that is there"
    for wrong in ({"since": None}, {"since": 2}, {"version": None}):
        assert code_of(list, client.complete(msgspec.structs.replace(asked, **wrong))) == "bad_message"
    outside = (protocol.Edit(start=99, end=99, text="z"),)
    bad = msgspec.structs.replace(asked, since=2, version=3, edits=outside)
    assert code_of(list, client.complete(bad)) == "bad_message"
    list(client.complete(protocol.Complete(path="b.py", version=2, cursor=0)))
    assert daemon.room.texts[-1].text == "def f():\n    xy", "as it was"


def test_one_connection_carries_one_completion_after_the_other(
    daemon: Running, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By the requests: a client that looks whether the daemon is there leaves a connection that carries none.
    carriers: list[Any] = []
    begin = RequestResponseCycle.run_asgi

    async def run_asgi(cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["path"] == "/v1/complete":
            carriers.append(cycle.transport)
        await begin(cycle, app)

    monkeypatch.setattr(RequestResponseCycle, "run_asgi", run_asgi)

    async def ask_often() -> None:
        async with await AsyncClient.connect("test", start=False, endpoint=daemon.endpoint) as other:
            for _ in range(3):
                assert kinds([event async for event in other.complete(asking())])[-1] == "Done"

    for _ in range(3):
        list(client.complete(asking()))
    asyncio.run(ask_often())
    first, second = carriers[:3], carriers[3:]
    assert len(first) == len(second) == 3
    assert len(set(first)) == len(set(second)) == 1
    assert set(first) != set(second)


def test_what_is_whole_already_goes_out_at_one_stroke(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(request: protocol.Complete, text: Any, deliver: Any) -> str:
        del request, text
        deliver(protocol.Begun(request="r", model="m", method="plain"))
        deliver(protocol.Done(request="r", text="", finish="stop"))
        return "r"

    monkeypatch.setattr(daemon.room, "submit", at_once)
    with Line.to(daemon.endpoint).sync() as http:
        response = http.post("/v1/complete", content=b'{"prefix": "x"}')
    assert response.headers["content-length"] == str(len(response.content))
    assert response.content.count(b"event: ") == 2
    assert daemon.room.cancelled == []


@pytest.mark.parametrize("fields", [{"version": 1}, {"cursor": 1}, {"prefix": None}, {"prefix": None, "version": 1}])
def test_a_text_comes_along_or_is_named_but_not_both(client: Client, fields: dict[str, Any]) -> None:
    assert code_of(list, client.complete(asking(**fields))) == "bad_message"


def test_silence_is_broken_by_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.05)
    with scripted_daemon(Script(steps=1, delay=0.4)) as daemon, Line.to(daemon.endpoint).sync() as http:
        body = http.post("/v1/complete", content=b'{"prefix": "x"}').content
    assert body.count(b": alive\n\n") >= 3
    assert body.count(b"event: step\ndata: ") == 1


def test_closing_the_stream_withdraws_the_request() -> None:
    with scripted_daemon(Script(steps=1000, delay=0.02)) as daemon, connected(daemon) as client:
        with contextlib.closing(client.complete(asking())) as events:
            assert isinstance(next(events), protocol.Begun)
            assert isinstance(next(events), protocol.Step)
        until(lambda: daemon.room.cancelled == ["r1"])
        assert daemon.room.steps < 1000


def test_a_request_is_cancelled_by_its_id() -> None:
    with scripted_daemon(Script(steps=1000, delay=0.02)) as daemon, connected(daemon) as client:
        with connected(daemon) as other:
            events = client.complete(asking())
            begun = next(events)
            other.cancel(begun.request)
            last = list(events)[-1]
        assert isinstance(last, protocol.Done)
        assert last.finish == "cancelled"


def test_a_client_that_leaves_is_forgotten(daemon: Running) -> None:
    with connected(daemon) as client:
        client.open_document("a.py", 1, "x")
        assert client.status().documents == 1
        gone = client.welcome.client
    assert (gone, None) in daemon.room.forgotten
    with connected(daemon) as other:
        assert other.status().documents == 0
        assert [info.name for info in other.status().clients] == ["test"]


def test_a_full_queue_is_an_error_of_its_own() -> None:
    with (
        scripted_daemon(Script(steps=1000, delay=0.02, limit=0)) as daemon,
        connected(daemon) as client,
        contextlib.closing(client.complete(asking())) as events,
    ):
        next(events)
        with pytest.raises(BusyError):
            list(client.complete(asking()))


def test_feedback_is_counted_and_handed_on(daemon: Running, client: Client) -> None:
    request = list(client.complete(asking()))[-1].request
    client.feedback(protocol.Feedback(request=request, outcome="shown"))
    client.feedback(protocol.Feedback(request=request, outcome="accepted", characters=3))
    client.feedback(protocol.Feedback(request="unknown", outcome="shown"))
    assert [told.outcome for told in daemon.room.told] == ["shown", "accepted", "shown"]
    (info,) = client.status().clients
    assert (info.requests, info.shown, info.accepted) == (1, 1, 1)


def test_what_clients_configure_reaches_their_documents() -> None:
    seen: list[dict[str, Any]] = []

    def resolve(path: str, language: str | None, settings: protocol.SettingValues) -> Any:
        del path, language
        mapping_layer(Rank.CLIENT, settings, "client")
        seen.append(dict(settings))
        return settings

    with scripted_daemon(resolve=resolve) as daemon, connected(daemon) as client, connected(daemon) as other:
        client.configure({"completion.max_tokens": 5})
        assert code_of(client.configure, {"completion.max_token": 5}) == "config"
        list(client.complete(asking()))
        list(other.complete(asking()))
        assert [text.settings for text in daemon.room.texts] == [{"completion.max_tokens": 5}, {}]


def test_the_model_is_loaded_and_freed_on_request(daemon: Running, client: Client) -> None:
    assert client.load().loaded
    assert not client.unload().loaded
    assert (daemon.room.loads, daemon.room.unloads) == (1, 1)


def test_watchers_see_every_clients_steps(daemon: Running, client: Client) -> None:
    with connected(daemon, "watcher") as watcher, contextlib.closing(watcher.steps()) as feed:
        first = next_of(feed, lambda: list(client.complete(asking())))
        assert isinstance(first, protocol.Observed)
        assert first.client == "test"
        rest = [next(feed), next(feed), next(feed)]
        assert isinstance(rest[-1], protocol.Settled)


def next_of(feed: Iterator[protocol.FeedEvent], act: Any) -> protocol.FeedEvent:
    """The first event of a feed that begins before something happens."""
    import threading

    timer = threading.Timer(0.3, act)
    timer.start()
    try:
        return next(feed)
    finally:
        timer.join()


def test_asyncio_clients_run_side_by_side() -> None:
    async def work(daemon: Running) -> list[list[str]]:
        async def one(name: str) -> list[str]:
            async with (
                await AsyncClient.connect(name, start=False, endpoint=daemon.endpoint) as client,
                contextlib.aclosing(client.complete(asking())) as events,
            ):
                return [type(event).__name__ async for event in events]

        return await asyncio.gather(*(one(f"client {number}") for number in range(5)))

    with scripted_daemon(Script(steps=3, delay=0.01)) as daemon:
        found = asyncio.run(work(daemon))
    assert found == [["Begun", "Step", "Step", "Step", "Done"]] * 5


def test_cancelling_a_task_withdraws_its_request() -> None:
    async def work(daemon: Running) -> None:
        async with await AsyncClient.connect("test", start=False, endpoint=daemon.endpoint) as client:
            arrived = asyncio.Event()

            async def read() -> None:
                async for event in client.complete(asking()):
                    if isinstance(event, protocol.Step):
                        arrived.set()

            task = asyncio.create_task(read())
            await arrived.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: daemon.room.cancelled == ["r1"])

    with scripted_daemon(Script(steps=1000, delay=0.02)) as daemon:
        asyncio.run(work(daemon))


def test_by_loopback_the_token_is_what_lets_one_in() -> None:
    import httpx

    with scripted_daemon(loopback=True) as daemon:
        with connected(daemon) as client:
            assert kinds(list(client.complete(asking())))[-1] == "Done"
        port = daemon.endpoint.port()
        assert port is not None
        address = f"http://127.0.0.1:{port.port}/v1/status"
        right = {"authorization": f"Bearer {port.token}"}
        with httpx.Client(trust_env=False) as http:
            assert http.get(address).status_code == 403
            assert http.get(address, headers={"authorization": "Bearer wrong"}).status_code == 403
            assert http.get(address, headers=right | {"origin": "http://evil.example"}).status_code == 403
            assert http.get(address, headers=right | {"host": "evil.example"}).status_code == 403
            assert http.get(address, headers=right).status_code == 200
    assert daemon.endpoint.port() is None


def test_a_page_in_a_browser_is_turned_away_by_socket_too(daemon: Running) -> None:
    with Line.to(daemon.endpoint).sync() as http:
        assert http.get("/v1/status", headers={"origin": "null"}).status_code == 403
        assert http.get("/v1/status").status_code == 200


def test_what_is_written_down_of_a_completion_is_figures_alone(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "assistant")
    list(client.complete(asking(path="/MARKER", prefix="MARKER", suffix="MARKER")))
    assert "r1 for test: length by model" in caplog.text
    assert "MARKER" not in caplog.text


def test_nothing_of_a_fault_but_its_place_is_said_or_logged(
    daemon: Running, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> str:
        raise ValueError("the user's code: " + asking().suffix)

    monkeypatch.setattr(daemon.room, "submit", broken)
    with pytest.raises(RefusedError, match="internal fault") as caught:
        list(client.complete(asking()))
    assert caught.value.code == "internal"
    assert "world" not in str(caught.value)
    assert "ValueError" in caplog.text
    assert "world" not in caplog.text
