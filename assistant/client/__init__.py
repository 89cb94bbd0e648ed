"""Talking to the daemon: find it or start it, ask, stream, cancel.

Loads no model library and, until it connects, no HTTP:

    with Client.connect("script") as client:
        for event in client.complete(protocol.Complete(path="a.py", prefix="def f(", suffix="")):
            ...

`AsyncClient` has the same methods as coroutines. Whatever happens to a daemon is an error of the `DaemonError` family,
and none makes a client hang, since a daemon that is alive is never silent for long.
"""

from assistant.client.aio import AsyncClient
from assistant.client.sync import Client

__all__ = ["AsyncClient", "Client"]
