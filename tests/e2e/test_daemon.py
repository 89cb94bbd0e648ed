"""The daemon with a real engine and a tiny random model, used as people do: by command line, curl and two at once."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from assistant import protocol
from assistant.client import Client, launch
from assistant.endpoint import default_endpoint
from assistant.paths import HOME_VARIABLE, log_dir
from tests.e2e.conftest import CODE, document_of
from tests.support.tiny_folder import write_model

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
ASKED = protocol.Complete(
    path="/a.py", prefix=CODE[:70], suffix=CODE[70:], options=protocol.Options(max_tokens=12, policy=False), typed=False
)
CURLED = '{"path": "fib.py", "prefix": "def fib(n):\\n    ", "options": {"max_tokens": 8, "policy": false}}'
HOOKED = """
import os, sys

def watch(event, values):
    if event in {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        with open(os.environ["WATCH_LOG"], "a") as log:
            log.write(f"{event} {values[1:]!r}\\n")

sys.addaudithook(watch)
from eagle_assist import main
main()
"""
PROGRAM = (sys.executable, "-P", "-c", HOOKED)


def environment(home: Path, model: Path) -> dict[str, str]:
    return {
        HOME_VARIABLE: str(home),
        "EAGLE_ASSIST_MODEL__NAME": str(model),
        "EAGLE_ASSIST_MODEL__PRECISION": "float32",
        "EAGLE_ASSIST_COMPLETION__MAX_TOKENS": "12",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture(name="short", scope="module")
def fixture_short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="ea-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(name="served", scope="module")
def fixture_served(short: Path, tiny_model: Path) -> Iterator[Path]:
    """A home with a daemon that hosts the tiny model."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(short / "served", tiny_model).items():
            patch.setenv(name, value)
        with Client.connect("fixture"):
            yield short / "served"
        program("daemon", "stop", "--now")
        assert launch.ended(default_endpoint(), 20)


def program(*arguments: object) -> Result:
    from assistant.cli import main

    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("options", [[], ["--method", "ngram"], ["--temperature", "1.5", "--seed", "3"]], ids=str)
@pytest.mark.parametrize("place", ["9:5", "8"])
def test_what_the_daemon_writes_is_what_this_process_would(
    served: Path, source: Path, place: str, options: list[str]
) -> None:
    del served
    ours, here = (
        document_of(program("complete", f"{source}:{place}", "--json", *options, *where))
        for where in ([], ["--no-daemon"])
    )
    assert ours.pop("daemon")
    assert not here.pop("daemon")
    assert ours.keys() == here.keys()
    assert ours["tokens"]
    for key in ("text", "tokens", "finish_reason", "prompt_tokens", "model", "method"):
        assert ours[key] == here[key], key
    for key in ("accepted", "origins"):
        assert [step[key] for step in ours["steps"]] == [step[key] for step in here["steps"]]


def test_what_an_editor_has_open_changes_nothing_of_what_is_written(served: Path, source: Path) -> None:
    del served
    before = document_of(program("complete", f"{source}:9:5", "--json"))
    with Client.connect("editor", workspace=[str(source.parent)]) as editor:
        other = str(source.parent / "other.py")
        editor.open_document(other, 1, CODE, "python")
        editor.change_document(other, 2, [protocol.Edit(start=len(CODE), end=len(CODE), text="\nfirst(last([1]))\n")])
        during = document_of(program("complete", f"{source}:9:5", "--json"))
    assert during["tokens"] == before["tokens"]
    assert during["prompt_tokens"] == before["prompt_tokens"]


def test_the_text_streams_and_its_trees_can_be_drawn(served: Path, source: Path) -> None:
    del served
    text = program("complete", f"{source}:9:5")
    assert text.exit_code == 0
    drawn = program("complete", f"{source}:9:5", "--tree", "--method", "ngram")
    assert drawn.stdout.endswith(text.stdout)
    assert "prefill: " in drawn.stdout
    assert "end: length" in drawn.stdout


def test_asking_twice_asks_the_model_twice(served: Path, source: Path) -> None:
    del served
    first, second = (document_of(program("complete", f"{source}:5", "--json")) for _ in range(2))
    assert first["tokens"] == second["tokens"] != []


def test_status_tells_what_scripts_rely_on(served: Path, tiny_model: Path) -> None:
    found = document_of(program("daemon", "status", "--json"))
    assert found["running"] is True
    assert found["socket"] == str(served / "run" / "daemon.sock")
    assert found["model"] == str(tiny_model)
    names = {"pid", "version", "head", "device", "precision", "loaded", "queue", "clients", "documents", "memory_bytes"}
    assert names <= found.keys()
    assert "the daemon runs" in program("daemon", "status").stdout


def test_two_clients_at_once_get_what_each_would_alone(served: Path) -> None:
    del served
    found: list[list[protocol.CompletionEvent]] = []

    def ask() -> None:
        with Client.connect("two") as client:
            found.append(list(client.complete(ASKED)))

    ask()
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    texts = [events[-1].text for events in found if isinstance(events[-1], protocol.Done)]
    assert len(texts) == 3
    assert len(set(texts)) == 1


def test_loading_is_seen_by_who_waits_for_it(served: Path) -> None:
    del served
    with Client.connect("waiting") as client:
        client.unload()
        events = list(client.complete(ASKED))
    assert any(isinstance(event, protocol.Progress) for event in events)
    assert isinstance(events[-1], protocol.Done)


def test_asking_the_daemon_loads_no_model_library(served: Path, source: Path) -> None:
    del served
    script = (
        "import contextlib, io, sys, eagle_assist\n"
        "sys.argv = ['eagle-assist', 'complete', sys.argv[1], '--json']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as printed:\n"
        "    eagle_assist.main()\n"
        "assert '\"daemon\": true' in printed.getvalue()\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    result = subprocess.run([sys.executable, "-c", script, source], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "numpy", "tokenizers", "safetensors"} & set(result.stdout.split())


def test_odd_names_of_documents_are_taken_as_they_are(served: Path) -> None:
    del served
    with Client.connect("odd") as client:
        for path in ("/a\0b.py", "untitled:1", "/" + "x" * 5000, "../.."):
            request = protocol.Complete(path=path, prefix="x = ", options=protocol.Options(max_tokens=1))
            assert isinstance(list(client.complete(request))[-1], protocol.Done)


def test_another_model_is_used_in_this_process(served: Path, source: Path, tmp_path: Path) -> None:
    del served
    other = write_model(tmp_path / "other", seed=1)
    assert not document_of(program("complete", source, "--model", other, "--json"))["daemon"]


def test_without_a_daemon_one_sentence_says_so(
    served: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del served
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    (tmp_path / "run").symlink_to(tmp_path)
    result = program("complete", source, "--json", "--quiet")
    assert not document_of(result)["daemon"]
    assert result.stderr.startswith("eagle-assist: completing without the daemon: ")
    assert result.stderr.count("\n") == 1


def test_curl_can_ask_it(served: Path) -> None:
    """As in the README."""
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("needs curl")
    result = subprocess.run(
        [curl, "-sN", "--unix-socket", served / "run" / "daemon.sock", "http://x/v1/complete", "-d", CURLED],
        capture_output=True,
        text=True,
        check=True,
    )
    events = [json.loads(line[6:]) for line in result.stdout.splitlines() if line.startswith("data: ")]
    assert events[0]["type"] == "begun"
    assert events[-1]["type"] == "done"


def test_the_log_can_be_read_and_removed(served: Path) -> None:
    assert "serving, pid" in program("logs").stdout
    assert program("logs", "--path").stdout.strip() == str(log_dir())
    listed = json.loads(program("purge", "--logs", "--json").stdout)
    assert not listed["removed"]
    assert str(served / "state" / "logs" / "daemon.log") in [entry["path"] for entry in listed["paths"]]
    assert program("purge", "--logs", "--yes").exit_code == 0
    assert program("logs").stdout == ""


def test_purge_asks_first_and_wants_to_be_told_what(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del served
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    kept = tmp_path / "cache" / "models" / "m"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * 1000)
    assert program("purge").exit_code == 2
    assert program("purge", "--models").exit_code == 130
    assert kept.exists()
    assert program("purge", "--logs", "--learned", "--yes").exit_code == 0
    assert kept.exists()
    assert "1 kB" in program("purge", "--all", "--yes").stdout
    assert not kept.exists()


@pytest.mark.parametrize("manager", ["systemd", "launchd"])
def test_a_file_for_the_service_manager_starts_this_installation(served: Path, manager: str) -> None:
    printed = program("daemon", "service-file", manager).stdout
    assert sys.executable in printed
    assert str(served) in printed


@pytest.mark.parametrize("network", ["as it is", "loopback alone"])
def test_nothing_is_ever_connected_to_but_the_socket(
    short: Path, tiny_model: Path, source: Path, tmp_path: Path, network: str
) -> None:
    """Every connect, bind and look-up of both processes, recorded by the interpreter itself."""
    prefix: tuple[str, ...] = ()
    if network == "loopback alone":
        prefix = ("unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
        if not shutil.which("unshare") or subprocess.run([*prefix, "true"], check=False).returncode != 0:
            pytest.skip("no network namespace can be made here")
    home, log = short / network.partition(" ")[0], tmp_path / "connects"
    variables = {**os.environ, **environment(home, tiny_model), "WATCH_LOG": str(log)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(home))
        endpoint = default_endpoint()
    daemon = subprocess.Popen([*prefix, *PROGRAM, "daemon", "run"], env=variables, stderr=subprocess.DEVNULL)
    try:
        launch_deadline(endpoint.reachable, daemon)
        asked = [*prefix, *PROGRAM, "complete", str(source), "--json", "--max-tokens", "4"]
        result = subprocess.run(asked, env=variables, capture_output=True, text=True, check=True)
        assert json.loads(result.stdout)["daemon"], result.stderr
        subprocess.run([*prefix, *PROGRAM, "daemon", "stop"], env=variables, check=True, capture_output=True)
        assert daemon.wait(30) == 0
    finally:
        daemon.kill()
        daemon.wait()
    seen = log.read_text().splitlines()
    assert f"socket.bind ('{endpoint.socket}',)" in seen
    assert f"socket.connect ('{endpoint.socket}',)" in seen
    assert all(str(endpoint.socket) in line for line in seen), seen


def launch_deadline(ready: object, process: "subprocess.Popen[bytes]") -> None:
    from tests.support.waiting import until

    assert callable(ready)
    until(lambda: process.poll() is not None or ready(), 60)
    assert process.poll() is None
