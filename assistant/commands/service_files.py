"""What service managers need to run the daemon: a systemd user unit and a launchd agent."""

import os
import plistlib
from pathlib import Path

from assistant.client.launch import default_command
from assistant.paths import HOME_VARIABLE

_UNIT = """\
[Unit]
Description=eagle-assist: code completion on this machine

[Service]
Type=exec
ExecStart={command}
UnsetEnvironment=PYTHONPATH
{environment}# 2: another daemon runs, or the configuration is wrong: trying again would not help.
Restart=on-failure
RestartPreventExitStatus=2
TimeoutStopSec=30
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX

[Install]
WantedBy=default.target
"""


def systemd() -> str:
    """A user unit for this installation."""
    home = _home()
    return _UNIT.format(
        command=" ".join(map(_quoted, default_command())),
        environment=f"Environment={_quoted(f'{HOME_VARIABLE}={home}')}\n" if home else "",
    )


def launchd() -> str:
    """A launch agent for this installation."""
    home = _home()
    agent = {
        "Label": "eagle-assist",
        "ProgramArguments": list(default_command()),
        "EnvironmentVariables": {HOME_VARIABLE: home} if home else {},
        "RunAtLoad": True,
        "KeepAlive": {"Crashed": True},
        "ProcessType": "Interactive",
    }
    return plistlib.dumps(agent).decode()


def _home() -> str | None:
    home = os.environ.get(HOME_VARIABLE)
    return str(Path(home).expanduser().absolute()) if home else None


def _quoted(word: str) -> str:
    """A word as systemd reads it: in double quotes, with its own escapes and doubled % and $."""
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(sign, written)
    return f'"{word}"'
