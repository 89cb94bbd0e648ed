"""The client's own part: events from bytes, other versions, silence."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import protocol
from assistant.client import Client, handshake, wire
from assistant.daemon.stream import encode
from assistant.endpoint import Endpoint
from assistant.errors import DaemonDiedError, DaemonSilentError, StorageError, VersionMismatchError
from tests.support.daemons import Running, scripted_daemon

ROOT = Path(__file__).parents[2]


@given(st.lists(st.text(), max_size=5), st.lists(st.integers(1, 50), max_size=30))
def test_events_arrive_whole_however_the_stream_is_cut(texts: list[str], cuts: list[int]) -> None:
    sent = [protocol.Done(request="r", text=text, finish="stop") for text in texts]
    data = b": alive\n\n".join([b"", *(encode(event) for event in sent), b""])
    parser = wire.EventParser(protocol.CompletionEvent)
    found: list[protocol.CompletionEvent] = []
    for cut in [*cuts, len(data)]:
        found += parser.feed(data[:cut])
        data = data[cut:]
    assert found == sent


def test_events_of_a_later_version_are_left_out() -> None:
    parser = wire.EventParser(protocol.CompletionEvent)
    assert list(parser.feed(b'event: new\ndata: {"type":"new"}\n\n')) == []
    done = encode(protocol.Done(request="r", text="", finish="stop")).replace(b'"text"', b'"later":1,"text"')
    assert [type(event) for event in parser.feed(done)] == [protocol.Done]


def test_what_is_no_event_is_an_error_of_the_family() -> None:
    with pytest.raises(DaemonDiedError):
        list(wire.EventParser(protocol.CompletionEvent).feed(b"data: {\n\n"))


@pytest.fixture(name="daemon")
def fixture_daemon() -> Iterator[Running]:
    with scripted_daemon() as running:
        yield running


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a folder to somebody else")
@pytest.mark.parametrize("start", [True, False])
def test_nothing_is_sent_to_a_socket_in_somebody_elses_folder(daemon: Running, *, start: bool) -> None:
    os.chown(daemon.endpoint.folder, 65534, 65534)
    with pytest.raises(StorageError, match="belongs to another user"):
        Client.connect("test", start=start, endpoint=daemon.endpoint)


@pytest.mark.parametrize(("mine", "start"), [("0.0.9", True), ("0.0.9", False), ("9.0", False)])
def test_a_daemon_that_is_newer_or_may_not_be_replaced_is_used(
    daemon: Running, monkeypatch: pytest.MonkeyPatch, mine: str, *, start: bool
) -> None:
    monkeypatch.setattr(handshake, "__version__", mine)
    with Client.connect("test", start=start, endpoint=daemon.endpoint, command=("false",)) as client:
        assert client.status().running


def test_an_older_daemon_is_asked_to_end(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "__version__", "9.0")
    with pytest.raises(Exception, match="could not be started"):
        Client.connect("test", endpoint=daemon.endpoint, command=(sys.executable, "-c", "raise SystemExit('no')"))
    assert daemon.room.closed


@pytest.mark.parametrize("start", [True, False])
def test_a_newer_daemon_of_another_protocol_is_left_alone(
    daemon: Running, monkeypatch: pytest.MonkeyPatch, *, start: bool
) -> None:
    monkeypatch.setattr(handshake, "__version__", "0.0.9")
    other = ((protocol.HEADER, "0"), ("content-type", "application/json"))
    monkeypatch.setattr(wire.Line, "to", lambda endpoint: wire.Line(str(endpoint.socket), "http://x", other))
    with pytest.raises(VersionMismatchError, match="stop it with"):
        Client.connect("test", start=start, endpoint=daemon.endpoint)
    assert not daemon.room.closed


@contextlib.contextmanager
def speaking(tmp_path: Path, said: bytes) -> Iterator[Endpoint]:
    """A place where each connection is answered with the same bytes, and then with silence."""
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    held.append(connection)
                    if connection.recv(65536):
                        connection.sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield Endpoint(tmp_path, tmp_path / "s")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for connection in held:
                connection.close()


def test_a_daemon_that_hangs_is_an_error_not_a_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SILENCE_S", 0.3)
    with speaking(tmp_path, b"") as endpoint, pytest.raises(DaemonSilentError):
        Client.connect("test", start=False, endpoint=endpoint)


def test_a_stream_that_falls_silent_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SILENCE_S", 0.3)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    event = encode(protocol.Begun(request="r", model="m", method="plain"))
    said = head + b"%x\r\n" % len(event) + event + b"\r\n"
    with speaking(tmp_path, said) as endpoint:
        client = Client(endpoint, protocol.Hello(client="t", version="1"), start=False, command=None)
        client.welcome = protocol.Welcome(client="c", version="1", pid=1)
        events = client.complete(protocol.Complete(prefix="x"))
        assert isinstance(next(events), protocol.Begun)
        with pytest.raises(DaemonSilentError):
            next(events)


def test_an_answer_that_is_no_message_is_an_error_of_the_family(tmp_path: Path) -> None:
    with (
        speaking(tmp_path, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as endpoint,
        pytest.raises(DaemonDiedError),
    ):
        Client.connect("test", start=False, endpoint=endpoint)


def test_importing_the_client_loads_neither_http_nor_models() -> None:
    script = "import sys, assistant.client; print(*{name.partition('.')[0] for name in sys.modules})"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert "msgspec" in loaded
    assert not loaded & {"httpx", "starlette", "uvicorn", "torch", "numpy", "models", "transformers"}


def test_messages_say_who_sends_them_where_they_have_a_place_for_it() -> None:
    assert wire.signed(protocol.CloseDocument(client="", path="a"), "me").client == "me"
    cancel = protocol.Cancel(request="r")
    assert msgspec.json.encode(wire.signed(cancel, "me")) == b'{"request":"r"}'
