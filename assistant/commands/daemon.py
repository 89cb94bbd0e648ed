"""`eagle-assist daemon`: the background service that hosts the model for every editor, terminal and script."""

import sys
from typing import TYPE_CHECKING, Any

import click

from assistant.commands import output
from assistant.errors import DaemonError, DaemonSilentError, DaemonUnavailableError

if TYPE_CHECKING:
    from assistant import protocol
    from assistant.endpoint import Endpoint

_CLIENT = "command line"
_END_S = 30.0

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group()
def daemon() -> None:
    """Start, stop and examine the background service.

    Editors and `complete` start it by themselves where none runs; it ends by itself when nobody has used it for long.
    """
    output.prepare()


@daemon.command()
def run() -> None:
    """Serve in the foreground, until a signal or `daemon stop`; what a service manager runs."""
    from assistant.daemon.main import serve
    from assistant.endpoint import default_endpoint

    if sys.stderr.isatty():
        click.echo(f"serving at {default_endpoint()}; `eagle-assist logs --follow` shows what goes on.", err=True)
    serve()


@daemon.command()
@as_json_option
def start(*, as_json: bool) -> None:
    """Start the daemon, unless it runs, and let it load its model."""
    from assistant.client import Client

    with Client.connect(_CLIENT) as client:
        status = client.load()
    _show(status, as_json=as_json)


@daemon.command()
@click.option("--now", is_flag=True, help="Cancel running completions instead of finishing them.")
def stop(*, now: bool) -> None:
    """End the daemon. It finishes the completions that run, for some seconds at most."""
    from assistant.client import launch
    from assistant.endpoint import default_endpoint

    endpoint = default_endpoint()
    if not endpoint.reachable() and launch.ended(endpoint, 0):
        click.echo("no daemon runs.")
        return
    try:
        _ask_to_end(endpoint, drain=not now)
    except DaemonSilentError:
        _terminate(endpoint)
    except DaemonUnavailableError:
        pass  # it is ending already
    if not launch.ended(endpoint, _END_S):
        _terminate(endpoint)
        if not launch.ended(endpoint, _END_S):
            raise DaemonError(f"the daemon (pid {endpoint.pid()}) does not end; kill that process.")
    click.echo("the daemon has ended.")


@daemon.command()
@as_json_option
def status(*, as_json: bool) -> None:
    """Tell whether a daemon runs, and what it hosts."""
    from assistant.client import Client
    from assistant.endpoint import default_endpoint

    try:
        with Client.connect(_CLIENT, start=False) as client:
            found = client.status()
    except DaemonUnavailableError:
        if as_json:
            output.write_json({"running": False, "socket": str(default_endpoint())})
        else:
            click.echo("no daemon runs; `eagle-assist daemon start` starts one.")
        return
    _show(found, as_json=as_json)


@daemon.command("service-file")
@click.argument("manager", type=click.Choice(("systemd", "launchd")), required=False)
def service_file(*, manager: str | None) -> None:
    """Print a file for the service manager of this system, which then starts the daemon at login.

    systemd: save it as ~/.config/systemd/user/eagle-assist.service, then `systemctl --user enable --now eagle-assist`.
    launchd: save it as ~/Library/LaunchAgents/eagle-assist.plist, then `launchctl load` it.
    """
    from assistant.commands.service_files import launchd, systemd

    click.echo(launchd() if (manager or _manager()) == "launchd" else systemd(), nl=False)


def _manager() -> str:
    return "launchd" if sys.platform == "darwin" else "systemd"


def _show(found: "protocol.Status", *, as_json: bool) -> None:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(found)
    if as_json:
        output.write_json(document)
        return
    loaded = "loaded" if found.loaded else "not loaded"
    lines = [
        f"the daemon runs: pid {found.pid}, version {found.version}, {found.socket}",
        f"model: {found.model}, {loaded}, {found.state}{f' ({found.message})' if found.message else ''}",
        f"computes: {found.method}, {found.precision} on {found.device}, head {found.head or 'none'}",
        f"holds: {found.memory_bytes / 1e6:.0f} MB, of which {found.cache_bytes / 1e6:.0f} MB keys and values",
        f"did: {found.completions} completions in {found.steps} steps; {found.queue} wait now",
    ]
    others = [client for client in found.clients if client.name != _CLIENT]
    lines += [f"client: {client.name}, {client.requests} requests, {len(client.documents)} open" for client in others]
    click.echo("\n".join(lines))


def _ask_to_end(endpoint: "Endpoint", *, drain: bool) -> None:
    """Of any version: neither hello nor its answer matters."""
    import httpx
    import msgspec

    from assistant import protocol
    from assistant.client import wire

    try:
        with wire.Line.to(endpoint).sync() as http:
            http.post("/v1/shutdown", content=msgspec.json.encode(protocol.Shutdown(drain=drain)), timeout=5.0)
    except httpx.HTTPError as error:
        raise wire.translated(error) from error


def _terminate(endpoint: "Endpoint") -> None:
    """Kill a daemon that hangs; the system closes its socket and its lock, the next one removes the rest."""
    import psutil

    pid = endpoint.pid()
    if pid is not None and psutil.pid_exists(pid):
        psutil.Process(pid).kill()
