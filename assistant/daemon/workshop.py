"""What the engine's thread works with: the host and the sessions. No other thread calls in here."""

import logging
from collections.abc import Callable
from pathlib import Path

from assistant import paths
from assistant.config import Settings
from assistant.config.languages import language_of
from assistant.daemon.host import Choice, Engine, Host, free_memory
from assistant.daemon.jobs import Job
from assistant.daemon.learned import LearnedLog
from assistant.daemon.library import Library, Opened
from assistant.daemon.run import LookAround, Ration, Run
from assistant.daemon.sessions import SessionPool
from assistant.daemon.wanted import wanted
from assistant.errors import StorageError
from models.hashes import Progress

_log = logging.getLogger(__name__)


def choice_of(settings: Settings) -> Choice:
    """The model that a configuration names."""
    model = settings.model
    return Choice(model.name, model.head or None, model.draft or None, model.precision, model.device)


class Workshop:
    """Begins completions and gives their sessions back.

    Args:
        host: what is computed on.
        look_around: finds what is read of other files.
        opened: path and text of the documents that are open.
        chunk: rows of a prompt between two pauses.
        settings: of the process.
        learned: where completions are kept to learn from; None: the user's own folder.
    """

    def __init__(
        self,
        host: Host,
        look_around: LookAround,
        opened: Opened,
        chunk: int,
        settings: Settings,
        learned: Path | None = None,
    ) -> None:
        self.host = host
        self._look_around = look_around
        self._library = Library(opened)
        self._chunk = chunk
        self._settings = settings
        self._learned = learned
        self._pool: SessionPool | None = None
        self._log: LearnedLog | None = None

    @property
    def cache_bytes(self) -> int:
        """Size of all keys and values."""
        return 0 if self._pool is None else self._pool.cache_bytes

    def ready(self, progress: Progress) -> Engine:
        """The engine, loaded where it is not, with a pool of sessions.

        Raises:
            UserError: it cannot be loaded.
        """
        engine = self.host.ensure(progress)
        if self._pool is None:
            self._pool = SessionPool(
                engine.session, self._settings.daemon.cache_mb << 20, self._settings.daemon.documents
            )
            _log.info("model loaded on %s in %s", engine.target.spec.device, engine.target.spec.precision)
        return engine

    def begin(self, job: Job, ration: Ration, progress: Progress) -> Callable[[], Run]:
        """Load what is missing, and return what opens the job's run, in case the job still stands then.

        Raises:
            UserError: the model or the method cannot be had.
        """
        engine = self.ready(progress)
        asked = wanted(job.request, job.text, engine)

        def open_run() -> Run:
            assert self._pool is not None
            kept = self._pool.lease(job.text.client, job.text.path, asked.method)
            try:
                library = self._library.others(job.text.path)
                return Run(job, engine, kept, asked, ration, self._look_around, library, self._chunk)
            except BaseException:
                self._pool.drop(kept)
                raise

        return open_run

    def learn(self, job: Job, run: Run) -> None:
        """Keep what the target wrote, where the user asked for that."""
        engine, learning = self.host.engine, self._settings.learning
        if not learning.enabled or engine is None or not run.written.tokens or run.written.attempts > 1:
            return
        spec = engine.target.spec
        if self._log is None:
            folder = self._learned or paths.learned_dir()
            self._log = LearnedLog(folder, spec.name, spec.precision, learning.max_mb << 20)
        try:
            self._log.add(run.prompt.ids, run.written.tokens, job.text.language or language_of(job.text.path))
        except StorageError as error:
            _log.warning("%s", error)

    def end(self, run: Run, *, sound: bool = True) -> None:
        """Give a run's session back; one that is not sound is dropped."""
        run.close()
        if self._pool is None:
            return
        if not sound:
            self._pool.drop(run.kept)
        self._pool.release(run.kept)

    def sample(self) -> bool:
        """While there is nothing to do: index open documents, time a plain step; False where there is no need."""
        engine = self.host.engine
        return engine is not None and (self._library.sort(engine.tokenizer) or engine.pace.sample())

    def forget(self, client: str, path: str | None) -> None:
        """Free the rows of a document or of a whole client."""
        if self._pool is not None:
            self._pool.forget(client, path)

    def configure(self, settings: Settings) -> None:
        """Take a new budget."""
        if settings.learning != self._settings.learning:
            self.close()
        self._settings = settings
        if self._pool is not None:
            self._pool.budget_bytes, self._pool.most = settings.daemon.cache_mb << 20, settings.daemon.documents
            self._pool.fit()

    def trim(self) -> None:
        """Free every cache that nothing runs on."""
        if self._pool is not None:
            self._pool.clear()
        free_memory()

    def rehost(self, choice: Choice) -> None:
        """Host another model from the next `ready` on; nothing runs."""
        self.close()
        self._pool = None
        self._library.clear()
        self.host.choose(choice)

    def unload(self) -> None:
        """Free the model and every cache; nothing runs."""
        if self.host.engine is not None:
            _log.info("model unloaded")
        self.close()
        self._pool = None
        self._library.clear()
        self.host.unload()

    def close(self) -> None:
        """Write what was learned."""
        log, self._log = self._log, None
        try:
            if log is not None and self._settings.learning.enabled:
                log.flush()
        except StorageError as error:
            _log.warning("%s", error)

    def to_cpu(self) -> bool:
        """The GPU is too small: host the model on the CPU; False where it is there already."""
        moved = self.host.to_cpu()
        if moved:
            _log.warning("the GPU ran out of memory: the model moves to the CPU")
            self.close()
            self._pool = None
            free_memory()
        return moved
