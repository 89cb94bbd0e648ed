"""The daemon put together: configuration, engine room, service, log."""

import logging
from pathlib import Path

from assistant import protocol
from assistant.config import Rank, Settings, mapping_layer
from assistant.config.watcher import ConfigWatcher
from assistant.daemon.context import Contexts
from assistant.daemon.engine_room import EngineRoom
from assistant.daemon.lifecycle import Daemon, Limits
from assistant.daemon.logs import write_to
from assistant.endpoint import default_endpoint
from assistant.errors import Problem
from assistant.paths import log_dir

_log = logging.getLogger(__name__)


class Configuration:
    """The configuration as the daemon uses it: of a document under a client's settings, and of the process.

    Raises:
        ConfigError: the environment is wrong. Files that are wrong stay as they were last good.
    """

    def __init__(self) -> None:
        self._watcher = ConfigWatcher(on_change=self._apply, on_problems=_report)
        self._room: EngineRoom | None = None
        self.contexts = Contexts(self.process().context)

    def start(self) -> None:
        """Follow the files."""
        self._watcher.start()

    def close(self) -> None:
        """Follow them no more."""
        self._watcher.close()
        self.contexts.close()

    def make_room(self) -> EngineRoom:
        """The engine room, told of every change from now on."""
        from assistant.daemon.scheduler import Scheduler  # loads torch

        self._room = Scheduler(self.process(), look_around=self.contexts.look_around, opened=self.contexts.readable)
        return self._room

    def process(self) -> Settings:
        """The settings for no document in particular."""
        return self._watcher.current().settings

    def resolve(self, path: str, language: str | None, client: protocol.SettingValues) -> Settings:
        """The settings for a document.

        Raises:
            ConfigError: the client's are wrong.
        """
        layer = mapping_layer(Rank.CLIENT, client, "client") if client else None
        document = Path(path) if Path(path).is_absolute() and "\0" not in path else None
        return self._watcher.current(document, layer).settings.for_document(path or None, language)

    def limits(self) -> Limits:
        """What bounds the process now."""
        daemon = self.process().daemon
        return Limits(
            idle_exit_s=daemon.idle_exit_minutes * 60 or None,
            idle_unload_s=daemon.idle_unload_minutes * 60 or None,
            memory_bytes=daemon.memory_mb * 1_000_000 or None,
        )

    def _apply(self) -> None:
        settings = self.process()
        logging.getLogger("assistant").setLevel(settings.daemon.log_level.upper())
        _log.info("the configuration has changed")
        self.contexts.settings = settings.context
        if self._room is not None:
            self._room.configure(settings)


def serve() -> None:
    """Run the daemon of this user until it ends.

    Raises:
        DaemonRunningError: another one runs.
        ConfigError: the environment sets something wrong.
        StorageError: a folder cannot be written to, or is not the user's alone.
    """
    configuration = Configuration()
    write_to(log_dir(), logging.getLevelNamesMapping()[configuration.process().daemon.log_level.upper()])
    daemon = Daemon(
        default_endpoint(), configuration.make_room, configuration.resolve, configuration.limits, configuration.contexts
    )
    configuration.start()
    try:
        daemon.run()
    finally:
        configuration.close()


def _report(problems: tuple[Problem, ...]) -> None:
    _log.warning("the configuration files have %d problems: `eagle-assist config check` names them", len(problems))
