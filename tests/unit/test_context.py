"""What a prompt holds of other files: the right ones, in a steady order, and never a secret."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.config.declaration import Context
from assistant.daemon.anchor import Place, Reader, prompt_at
from assistant.daemon.context import Contexts
from assistant.daemon.context.facts import definitions_of, imports_of
from assistant.daemon.context.index import Index
from assistant.daemon.context.overlap import most_alike
from assistant.daemon.context.passages import Passage, fit, outline
from assistant.daemon.context.view import OpenDocument, View
from assistant.daemon.prompt import DEFAULT_WINDOW, Surroundings, build_prompt
from models.fim import detect
from tests.support.tiny_tokenizer import tiny_tokenizer

SECRET = "hunter2-do-not-tell"
MAIN = "from lib.shapes import Circle\n\n\ndef area():\n    return Circle(2).\n"


def size_of(text: str) -> int:
    return len(text) // 4


@pytest.fixture(name="root")
def fixture_root(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    (root / "lib").mkdir(parents=True)
    (root / "lib/shapes.py").write_text(
        "PI = 3\n\n\nclass Circle:\n    def __init__(self, radius: int) -> None:\n        self.radius = radius\n\n"
        "    def area(self) -> int:\n        return PI * self.radius**2\n"
    )
    (root / "lib/other.py").write_text("def unrelated():\n    pass\n")
    (root / ".env").write_text(f"Circle={SECRET}\n")
    (root / "secrets.yaml").write_text(f"Circle: {SECRET}\n")
    (root / "main.py").write_text(MAIN)
    return root


@pytest.fixture(name="contexts")
def fixture_contexts(root: Path) -> Iterator[Contexts]:
    contexts = Contexts(Context(max_tokens=256))
    contexts.enter([str(root)])
    index = contexts._rooms[root].index
    assert index is not None
    index._complete.wait(20)
    yield contexts
    contexts.close()


def around(contexts: Contexts, root: Path, text: str = MAIN) -> Surroundings | None:
    return contexts.surroundings(str(root / "main.py"), text, len(text) - 1, "python", size_of)


class TestSurroundings:
    def test_they_show_how_the_names_at_the_cursor_are_used(self, contexts: Contexts, root: Path) -> None:
        found = around(contexts, root)
        assert found is not None
        assert (found.name, found.path) == ("proj", "main.py")
        ((path, text),) = found.files
        assert path == "lib/shapes.py"
        assert text.split("\n") == [
            "class Circle:",
            "    def __init__(self, radius: int) -> None:",
            "    def area(self) -> int:",
        ]

    def test_an_open_document_counts_as_it_is_in_the_editor(self, contexts: Contexts, root: Path) -> None:
        contexts.note(str(root / "lib/shapes.py"), "class Circle:\n    def girth(self): ...\n")
        found = around(contexts, root)
        assert found is not None
        assert "girth" in found.files[0][1]
        contexts.forget(str(root / "lib/shapes.py"))
        contexts._rooms[root].given.clear()
        again = around(contexts, root)
        assert again is not None
        assert "radius" in again.files[0][1]

    def test_what_was_edited_lately_elsewhere_is_among_them(self, contexts: Contexts, root: Path) -> None:
        text = "def unrelated():\n    fresh = 1\n    return fresh\n"
        contexts.note(str(root / "lib/other.py"), text, edited_at=text.index("fresh"))
        found = around(contexts, root)
        assert found is not None
        assert "fresh = 1" in dict(found.files)["lib/other.py"]

    def test_typing_on_leaves_them_as_they_are(self, contexts: Contexts, root: Path) -> None:
        first = around(contexts, root)
        for more in ("r", "ra", "rad", "rad + unrelated", "rad + unrelated()"):
            assert around(contexts, root, MAIN[:-1] + more + "\n") is first

    def test_none_where_nothing_helps_or_they_are_switched_off(self, contexts: Contexts, root: Path) -> None:
        assert around(contexts, root, "x = 1\n") is None
        contexts.settings = Context(enabled=False)
        assert around(contexts, root) is None
        contexts.settings = Context(max_tokens=0)
        assert around(contexts, root) is None

    def test_they_keep_to_their_budget(self) -> None:
        passages = [Passage("a.py", "x = 1\n" * 50), Passage("b.py", "y = 2\n" * 50)]
        found = fit(passages, size_of, 30)
        assert found
        assert sum(size_of(one.path + one.text) for one in found) <= 30
        assert found[0].text.startswith("x = 1")

    def test_an_index_under_way_is_not_waited_for(self, root: Path) -> None:
        contexts = Contexts(Context(max_tokens=256))
        contexts.enter([str(root)])
        around(contexts, root)
        contexts.close()


class TestOverlap:
    """Languages whose definitions cannot be told."""

    SERVICE = "services:\n  web:\n    image: nginx\n    restart: always\n    environment:\n"
    OTHER = (
        "# proxies\n" * 20
        + "services:\n  cache:\n    image: redis\n    restart: always\n    environment:\n      SIZE: 5\n"
    )

    def test_the_window_that_shares_most_words_is_shown_the_likest_text_first(self) -> None:
        words = "services web image restart always"
        others = [("far", "nothing of this kind\n"), ("some", f"{words} and ten more words that stand elsewhere\n")]
        found = most_alike(self.SERVICE, len(self.SERVICE), [*others, ("other", self.OTHER)])
        assert [one.path for one in found] == ["other", "some"]
        assert found[0].text.endswith("SIZE: 5")
        assert found[0].text.count("# proxies") < 16
        assert [one.path for one in most_alike(self.SERVICE, 9, [("a", self.OTHER), ("b", self.OTHER)], 1)] == ["a"]

    def test_a_few_words_in_common_are_chance(self) -> None:
        assert most_alike("services web image", 5, [("a", "services web image\n")]) == []
        assert most_alike("", 0, [("a", ""), ("b", "x\n" * 9000 + self.OTHER)]) == []

    def test_documents_and_the_folder_of_a_file_are_compared(self, contexts: Contexts, root: Path) -> None:
        index = contexts._rooms[root].index
        assert index is not None
        for name in ("lib/near.yml", "lib/near.md", "far.yml", "lib/secrets.yml"):
            (root / name).write_text(self.OTHER + f"      NAME: {name}\n")
            index.update(name)

        def paths() -> set[str]:
            contexts._rooms[root].given.clear()
            path = str(root / "lib/this.yml")
            found = contexts.surroundings(path, self.SERVICE, len(self.SERVICE), "yaml", size_of)
            return {path for path, _ in found.files} if found is not None else set()

        assert paths() == {"lib/near.yml"}
        contexts.note(str(root / "notes.txt"), self.OTHER)
        assert paths() == {"lib/near.yml", "notes.txt"}
        (root / "lib/near.yml").unlink()
        index.update("lib/near.yml")
        assert paths() == {"notes.txt"}

    def test_names_decide_where_definitions_can_be_told(self, contexts: Contexts, root: Path) -> None:
        contexts.note(str(root / "notes.txt"), MAIN)
        found = around(contexts, root)
        assert found is not None
        assert [path for path, _ in found.files] == ["lib/shapes.py"]

    def test_no_more_than_a_few_texts_are_read(self, tmp_path: Path) -> None:
        for number in range(40):
            (tmp_path / f"{number}.yml").write_text(self.OTHER)
        index = Index(tmp_path, lambda _: True)
        index.scan()
        documents = {str(tmp_path / f"{number}.txt"): OpenDocument(self.OTHER, "plaintext") for number in range(40)}
        assert len(list(View(documents, tmp_path, index).texts_near("0.yml", "yaml"))) == 12


class TestSecrets:
    @pytest.mark.parametrize("name", [".env", "secrets.yaml", ".ssh/config.py", "id_rsa.py", "deploy.pem"])
    def test_a_planted_secret_is_in_no_prompt(self, contexts: Contexts, root: Path, name: str) -> None:
        secret = root / name
        secret.parent.mkdir(exist_ok=True)
        text = f'class Circle:\n    key = "{SECRET}"\n'
        secret.write_text(text)
        index = contexts._rooms[root].index
        assert index is not None
        index.update(name)
        contexts.note(str(secret), text, edited_at=3)
        assert contexts.is_secret(str(secret))
        tokenizer = tiny_tokenizer()
        found = around(contexts, root)
        prompt = build_prompt(MAIN, len(MAIN) - 1, tokenizer, detect(tokenizer), surroundings=found)
        assert SECRET.encode() not in tokenizer.join(prompt.ids)
        assert contexts.surroundings(str(secret), text, 5, "python", size_of) is None

    def test_a_pattern_of_the_users_holds_for_context_and_completion(self, root: Path) -> None:
        contexts = Contexts(Context(max_tokens=256, secret_patterns=("lib/",)))
        contexts.enter([str(root)])
        assert contexts.is_secret(str(root / "lib/shapes.py"))
        contexts.note(str(root / "lib/shapes.py"), "class Circle: ...\n")
        assert around(contexts, root) is None
        contexts.close()


class TestPrompt:
    FILES = Surroundings("proj", (("lib/b.py", "class B: ..."), ("lib/a.py", "def a(): ...")), "main.py")

    def test_other_files_come_before_the_edited_one(self) -> None:
        tokenizer = tiny_tokenizer()
        prompt = build_prompt("a(\n)\n", 2, tokenizer, detect(tokenizer), surroundings=self.FILES)
        text = tokenizer.decode(prompt.ids)
        assert text.startswith("proj\nlib/b.py\nclass B: ...\nlib/a.py\ndef a(): ...\nmain.py\n")
        marks = [token for token in prompt.ids if not tokenizer.token_bytes(token)]
        names = ["<|repo_name|>", *["<|file_sep|>"] * 3, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
        assert marks == [tokenizer.special(name) for name in names]
        assert prompt.prefix == build_prompt("a(\n)\n", 2, tokenizer, detect(tokenizer)).prefix

    def test_they_come_before_a_plain_continuation_too(self) -> None:
        tokenizer = tiny_tokenizer()
        prompt = build_prompt("a(", 2, tokenizer, detect(tokenizer), surroundings=self.FILES)
        assert tokenizer.decode(prompt.ids).endswith("main.py\na")

    @settings(max_examples=25)
    @given(typed=st.text("abc (.", max_size=12))
    def test_typing_keeps_the_beginning_of_the_prompt(self, typed: str) -> None:
        tokenizer = tiny_tokenizer()
        reader = Reader(tokenizer, detect(tokenizer), DEFAULT_WINDOW, surroundings=self.FILES)
        first, anchor = prompt_at(Place("x\n\ny\n", 2), reader, None)
        later, again = prompt_at(Place(f"x\n{typed}\ny\n", 2 + len(typed)), reader, anchor)
        assert again is anchor
        assert later.ids[: len(first.ids)] == first.ids


class TestFacts:
    @pytest.mark.parametrize(
        ("language", "text", "names"),
        [
            ("python", "class A(B):\n    async def f(self): ...\nMAX_SIZE = 3\nx = 1\n", ["A", "f", "MAX_SIZE"]),
            ("typescript", "export abstract class A {}\nexport const f = () => 1;\ntype T = 1;\n", ["A", "f", "T"]),
            ("go", "func (s *S) Run() {\n}\ntype S struct {\n}\n", ["Run", "S"]),
            ("rust", "pub(crate) fn f<T>() {}\nstruct S;\nimpl S {\n    pub fn g(&self) {}\n}\n", ["f", "S", "g"]),
            ("java", "public final class A {\n  private int f(int x) {\n    if (x) {\n", ["A", "f"]),
            ("cpp", "#define MAX(a) a\nclass A {\n  int f(int x) {\n};\n", ["MAX", "A", "f"]),
            ("shellscript", "f() {\n}\nfunction g() {\n}\n", ["f", "g"]),
            ("plaintext", "class A:\n", []),
        ],
    )
    def test_definitions(self, language: str, text: str, names: list[str]) -> None:
        assert [definition.name for definition in definitions_of(text, language)] == names

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("from a.b import c\nimport d.e\n", ["b", "e"]),
            ("import x from './lib/y.js';\nconst z = require(\"../w\");\n", ["y", "w"]),
            ('#include "p/q.h"\n#include <r>\n', ["q", "r"]),
            ("use a::b::C;\n", ["C"]),
            ("source ./lib/x.sh\n", ["x"]),
        ],
    )
    def test_imports(self, text: str, names: list[str]) -> None:
        assert list(imports_of(text)) == names

    def test_an_outline_has_signatures_over_several_lines_and_no_bodies(self) -> None:
        text = "def f(\n    a,\n    b,\n):\n    return a\n\n\ndef g():\n    pass\n"
        found = outline("a.py", text, "python", ["f"])
        assert found == Passage("a.py", "def f(\n    a,\n    b,\n):")
        assert outline("a.py", text, "python", ["h"]) is None
