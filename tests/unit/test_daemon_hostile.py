"""Peers that speak no sense, far too much, too slowly or not at all: an answer or a closed connection, no crash."""

import contextlib
import logging
import socket
from collections.abc import Iterator

import psutil
import pytest

from assistant import protocol
from assistant.client import Client
from assistant.daemon import decoding, guard, server
from tests.support.daemons import Running, scripted_daemon
from tests.support.scripted_room import Script
from tests.support.waiting import until

MEGABYTE = 1 << 20


@pytest.fixture(name="daemon")
def fixture_daemon() -> Iterator[Running]:
    with scripted_daemon() as running:
        yield running
        assert answers(running), "the daemon still works after what was done to it"


def answers(daemon: Running) -> bool:
    with Client.connect("test", start=False, endpoint=daemon.endpoint) as client:
        return isinstance(list(client.complete(protocol.Complete(prefix="x")))[-1], protocol.Done)


def raw(daemon: Running) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(20)
    connection.connect(str(daemon.endpoint.socket))
    return connection


def reply(connection: socket.socket) -> bytes:
    """The daemon's answer, of a stream the head alone; less where it closes the connection before."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while not _whole(found) and (data := connection.recv(65536)):
            found += data
    return found


def _whole(found: bytes) -> bool:
    head, end, body = found.partition(b"\r\n\r\n")
    _, _, length = head.partition(b"content-length: ")
    return bool(end) and len(body) >= int(length.split(b"\r\n")[0] or 0)


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def memory() -> int:
    return int(psutil.Process().memory_info().rss)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", b"no valid JSON"),
        (b"{", b"no valid JSON"),
        (b"[]", b"no Complete"),
        (b'{"prefix": 1}', b"no Complete"),
        (b'{"prefix": "x", "unknown": 1}', b"unknown"),
        (b'{"prefix": "\\ud800"}', b"no valid JSON"),
        (b"\xff\xfe", b"no valid JSON"),
        (b"[" * 1_000_000, b"no "),
        (b'{"prefix": "x", "options": {"shape": []}}', b"shape"),
    ],
)
def test_malformed_messages_are_refused_with_a_reason(daemon: Running, body: bytes, reason: bytes) -> None:
    with raw(daemon) as connection:
        connection.sendall(post("/v1/complete", body))
        found = reply(connection)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"bad_message"' in found
    assert reason in found


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 1000,
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/hello HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    ],
)
def test_what_is_no_http_is_answered_as_such(daemon: Running, data: bytes) -> None:
    with raw(daemon) as connection:
        connection.sendall(data)
        assert reply(connection).startswith(b"HTTP/1.1 4")


def test_headers_without_end_are_cut_off(daemon: Running) -> None:
    with raw(daemon) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"GET /v1/status HTTP/1.1\r\n")
        for _ in range(10_000):
            connection.sendall(b"x: " + b"y" * 1000 + b"\r\n")
        pytest.fail("the daemon took 10 MB of headers")


def test_unknown_places_and_methods_are_refused(daemon: Running) -> None:
    for request, code in (
        (post("/v2/hello", b""), b"not_found"),
        (b"GET /v1/hello HTTP/1.1\r\nhost: x\r\n\r\n", b"method"),
    ):
        with raw(daemon) as connection:
            connection.sendall(request)
            assert b'"code":"' + code in reply(connection)


def test_another_version_of_the_protocol_is_refused_but_may_end_the_daemon(daemon: Running) -> None:
    other = f"{protocol.HEADER}: {protocol.VERSION + 1}"
    with raw(daemon) as connection:
        connection.sendall(post("/v1/hello", b'{"client":"x","version":"9"}', other))
        found = reply(connection)
    assert found.startswith(b"HTTP/1.1 409 ")
    assert b'"code":"version"' in found


def test_a_body_that_says_it_is_huge_is_not_even_read(daemon: Running) -> None:
    before = memory()
    with raw(daemon) as connection:
        connection.sendall(b"POST /v1/complete HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n")
        found = reply(connection)
    assert found.startswith(b"HTTP/1.1 413 ")
    assert memory() - before < 10 * MEGABYTE


def test_a_body_of_100_megabytes_in_pieces_is_cut_off(daemon: Running) -> None:
    before, sent = memory(), 0
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with raw(daemon) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"POST /v1/complete HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        while sent < 100 * MEGABYTE:
            connection.sendall(piece)
            sent += len(piece)
    assert sent < decoding.BODY_LIMIT + 4 * MEGABYTE
    assert memory() - before < 40 * MEGABYTE


def test_a_body_that_never_arrives_is_given_up(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BODY_S", 0.2)
    with raw(daemon) as connection:
        connection.sendall(b"POST /v1/complete HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{")
        assert b"did not arrive" in reply(connection)


def test_200_idle_connections_cost_little_and_are_closed_in_the_end(
    daemon: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "HEADERS_S", 1.0)
    before = memory()
    with contextlib.ExitStack() as held:
        idle = [held.enter_context(raw(daemon)) for _ in range(200)]
        for connection in idle[::2]:
            connection.sendall(b"POST /v1/comp")
        assert answers(daemon)
        assert memory() - before < 40 * MEGABYTE
        for connection in idle:
            assert reply(connection) == b""


def test_connections_beyond_the_bound_are_turned_away(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_CONNECTIONS", 3)
    with raw(daemon), raw(daemon), raw(daemon), raw(daemon) as fourth:
        assert reply(fourth) == b""
    until(lambda: answers(daemon))


def test_a_reader_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "COMPLETION_EVENTS", 20)
    before = memory()
    body = b'{"prefix": "' + b"x" * 100_000 + b'"}'
    with scripted_daemon(Script(steps=100_000, size=50, delay=0.0001)) as daemon:
        with raw(daemon) as connection:
            connection.sendall(post("/v1/complete", body))
            until(lambda: daemon.room.cancelled == ["r1"])
        assert memory() - before < 40 * MEGABYTE
        assert daemon.room.steps < 100_000


def test_a_stalled_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "STALL_S", 0.2)
    with scripted_daemon(Script(steps=900, size=2000)) as daemon, raw(daemon) as connection:
        connection.sendall(post("/v1/complete", b'{"prefix": "x"}'))
        until(lambda: daemon.room.completions == 1)
        until(lambda: not daemon.daemon.connections)


def test_a_slow_watcher_misses_the_oldest_and_is_told_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FEED_EVENTS", 5)
    # Many short answers: a long one's own reader might fall behind an engine that takes no time.
    with scripted_daemon(Script(steps=100, size=500)) as daemon, raw(daemon) as connection:
        connection.sendall(b"GET /v1/steps HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"200 OK" in reply(connection)
        for _ in range(30):
            assert answers(daemon)
        seen = b""
        while b'"type":"missed"' not in seen:
            data = connection.recv(65536)
            assert data, "the feed ended without a word"
            seen += data
    told = seen.count(b'"type":"observed"')
    assert 0 < told < 3000


def test_hostile_peers_leave_no_text_in_the_log(daemon: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "assistant")
    for body in (b'{"prefix": "MARKER"', b'{"MARKER": 1}', b'{"prefix":"MARKER","path":"MARKER","cursor":1}'):
        with raw(daemon) as connection:
            connection.sendall(post("/v1/complete", body) + b"MARKER\r\n\r\n")
            reply(connection)
    assert "MARKER" not in caplog.text
