"""What the service tells of workspaces and documents, and that secret files are not completed in."""

from dataclasses import replace
from pathlib import Path

from assistant import protocol
from assistant.client import Client
from assistant.config import Settings
from assistant.config.declaration import Context
from assistant.daemon.context import Contexts
from assistant.daemon.engine_room import Text
from assistant.daemon.text import Reason
from tests.support.daemons import scripted_daemon
from tests.support.tiny_tokenizer import tiny_tokenizer
from tests.support.waiting import until


def test_documents_and_workspaces_reach_the_context(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("class Stored:\n    def member(self): ...\n")
    settings = Settings(context=Context(max_tokens=256))
    contexts = Contexts(settings.context)
    with scripted_daemon(contexts=contexts) as daemon:
        client = Client.connect("test", start=False, endpoint=daemon.endpoint, workspace=(str(tmp_path),))
        room = contexts._rooms[tmp_path]
        until(lambda: room.index is not None and room.index.complete)
        client.open_document(str(tmp_path / "open.py"), 1, "class Opened:\n    def other(self): ...\n")
        document = "x = Stored(Opened())\n"
        text = Text(str(tmp_path / "main.py"), "python", document, 4, "", settings=settings)
        found = contexts.look_around(text, tiny_tokenizer())
        assert found is not None
        assert {path for path, _ in found.files} == {"lib.py", "open.py"}
        client.close_document(str(tmp_path / "open.py"))
        assert contexts.opened() == []
        client.close()
        assert tmp_path not in contexts._rooms
    contexts.close()


def test_a_secret_file_is_not_completed_in_and_the_answer_says_why(tmp_path: Path) -> None:
    with (
        scripted_daemon(resolve=lambda *_: Settings()) as daemon,
        Client.connect("test", start=False, endpoint=daemon.endpoint) as client,
    ):
        asked = protocol.Complete(path=str(tmp_path / ".env"), prefix="KEY=", suffix="")
        (done,) = client.complete(asked)
        assert isinstance(done, protocol.Done)
        assert (done.text, done.finish, done.reason) == ("", "filtered", Reason.SECRET.words)
        assert daemon.room.texts == []


def test_a_workspace_is_indexed_with_the_first_prompt_that_has_room(tmp_path: Path) -> None:
    contexts = Contexts(Context())
    contexts.enter([str(tmp_path)])
    assert contexts._rooms[tmp_path].index is None
    text = Text(str(tmp_path / "main.py"), "python", "x = 1\n", 4, "", settings=Settings())
    contexts.look_around(text, tiny_tokenizer())
    assert contexts._rooms[tmp_path].index is None
    wider = replace(text, settings=Settings(context=Context(max_tokens=64)))
    contexts.look_around(wider, tiny_tokenizer())
    assert contexts._rooms[tmp_path].index is not None
    contexts.close()


def test_a_root_that_is_no_workspace_is_not_indexed() -> None:
    contexts = Contexts(Context())
    contexts.enter(["/", str(Path.home()), "/no such folder"])
    assert contexts._rooms == {}
