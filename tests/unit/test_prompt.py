"""From a document and a cursor to a prompt: windows, fill-in-the-middle, token healing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.daemon.prompt import DEFAULT_WINDOW, Window, build_prompt
from models.fim import detect
from models.tokenizer import Tokenizer
from tests.support.tiny_tokenizer import SPECIAL, tiny_tokenizer

CODE = st.text(
    st.one_of(st.sampled_from("ab_ \n\t().:='1"), st.sampled_from("ü🙂中\u2028"), st.characters(codec="utf-8")),
    max_size=200,
)


@pytest.fixture(name="tokenizer")
def fixture_tokenizer() -> Tokenizer:
    return tiny_tokenizer()


def spelt(tokenizer: Tokenizer, ids: tuple[int, ...]) -> bytes:
    return b"".join(tokenizer.token_bytes(token) for token in ids)


def healed(text: str) -> str:
    """What is taken off the end of a prefix."""
    return build_prompt(text, len(text), tiny_tokenizer(), None).forced.decode()


@given(text=CODE, data=st.data())
def test_prompt_and_forced_bytes_are_the_text_around_the_cursor(text: str, data: st.DataObject) -> None:
    tokenizer = tiny_tokenizer()
    cursor = data.draw(st.integers(0, len(text)))
    prompt = build_prompt(text, cursor, tokenizer, detect(tokenizer))
    assert spelt(tokenizer, prompt.prefix) + prompt.forced == text[:cursor].encode()
    assert spelt(tokenizer, prompt.suffix).decode() == (text[cursor:] if text[cursor:].strip() else "")
    assert spelt(tokenizer, prompt.ids) == spelt(tokenizer, prompt.prefix) + spelt(tokenizer, prompt.suffix)
    assert prompt.ids


@settings(max_examples=60)
@given(text=CODE.map(lambda text: text * 9), data=st.data(), size=st.integers(2, 60))
def test_a_window_is_a_part_of_the_text_that_touches_the_cursor(text: str, data: st.DataObject, size: int) -> None:
    tokenizer = tiny_tokenizer()
    cursor = data.draw(st.integers(0, len(text)))
    prompt = build_prompt(text, cursor, tokenizer, detect(tokenizer), Window(size, size))
    before = spelt(tokenizer, prompt.prefix) + prompt.forced
    after = spelt(tokenizer, prompt.suffix)
    assert text[:cursor].encode().endswith(before)
    assert text[cursor:].encode().startswith(after)
    before.decode()
    after.decode()
    assert len(prompt.prefix) <= size
    assert len(prompt.suffix) <= size
    if cursor and size >= 4:  # no character has more tokens
        assert before


class TestForm:
    def test_text_behind_the_cursor_makes_it_fill_in_the_middle(self, tokenizer: Tokenizer) -> None:
        prompt = build_prompt("x = \ny\n", 0, tokenizer, detect(tokenizer))
        markers = [tokenizer.special(f"<|fim_{name}|>") for name in ("prefix", "suffix", "middle")]
        assert prompt.ids == (markers[0], markers[1], *tokenizer.encode("x = \ny\n"), markers[2])

    @pytest.mark.parametrize("rest", ["", "\n", " \n\n"])
    def test_nothing_behind_the_cursor_makes_it_a_plain_continuation(self, tokenizer: Tokenizer, rest: str) -> None:
        prompt = build_prompt("x\n" + rest, 2, tokenizer, detect(tokenizer))
        assert prompt.ids == prompt.prefix == tuple(tokenizer.encode("x\n"))

    def test_a_family_without_the_form_reads_the_prefix(self, tokenizer: Tokenizer) -> None:
        prompt = build_prompt("x\ny\n", 2, tokenizer, None)
        assert prompt.ids == tuple(tokenizer.encode("x\n"))
        assert spelt(tokenizer, prompt.suffix) == b"y\n"

    def test_an_empty_document_still_has_a_token_to_start_from(self, tokenizer: Tokenizer) -> None:
        assert build_prompt("", 0, tokenizer, detect(tokenizer)).ids == (tokenizer.special("<|endoftext|>"),)

    @pytest.mark.parametrize("special", SPECIAL)
    def test_a_files_text_never_becomes_a_special_token(self, tokenizer: Tokenizer, special: str) -> None:
        text = f"x{special}\ny{special}\n"
        prompt = build_prompt(text, text.index("y"), tokenizer, detect(tokenizer))
        ids = [token for token in prompt.ids if not tokenizer.token_bytes(token)]
        assert ids == [tokenizer.special(f"<|fim_{name}|>") for name in ("prefix", "suffix", "middle")]


class TestHealing:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("def retu", " retu"),
            ("    retu", " retu"),
            ("foo(", "("),
            ("x = ", " "),
            ("x ==", " =="),
            ("a_b", "_b"),
            ("x1", "1"),
            ("gr\u00fc", "\u00fc"),
            ("ret", "ret"),
        ],
    )
    def test_the_last_word_is_taken_off(self, text: str, expected: str) -> None:
        assert expected.endswith(healed(text))
        assert healed(text)

    @pytest.mark.parametrize("text", ["", "x\n", "if x:\n", "\n\n"])
    def test_nothing_is_taken_off_behind_a_lines_end(self, text: str) -> None:
        assert not healed(text)

    @pytest.mark.parametrize("indent", ["    ", "        ", "\t", "\t\t  ", " " * 40])
    def test_a_blank_line_begins_at_its_first_column(self, tokenizer: Tokenizer, indent: str) -> None:
        prompt = build_prompt(f"if x:\n{indent}\ny\n", 6 + len(indent), tokenizer, detect(tokenizer))
        assert spelt(tokenizer, prompt.prefix) == b"if x:\n"
        assert prompt.forced == indent.encode()

    def test_the_prompt_ends_where_the_whole_texts_tokens_would(self, tokenizer: Tokenizer) -> None:
        """The tokens left are a beginning of the tokens of the finished text, which a half-typed word's are not."""
        prompt = build_prompt("x = 1\ndef f():\n    retu", 22, tokenizer, None)
        whole = tuple(tokenizer.encode("x = 1\ndef f():\n    return"))
        assert whole[: len(prompt.ids)] == prompt.ids

    @pytest.mark.parametrize("word", ["q" * 100, "selfish", "x = retur", "importer"])
    def test_no_more_is_taken_off_than_one_token_can_spell(self, tokenizer: Tokenizer, word: str) -> None:
        """Every further token would be one more forward, and a guess, before the first new character."""
        forced = healed(word).encode()
        assert any(tokenizer.token_bytes(token).startswith(forced) for token in range(tokenizer.vocab_size))


class TestWindow:
    LINES = "".join(f"value_{number} = {number}\n" for number in range(4000))

    def test_it_begins_at_a_lines_start(self, tokenizer: Tokenizer) -> None:
        prompt = build_prompt(self.LINES, len(self.LINES), tokenizer, None, Window(200, 50))
        before = spelt(tokenizer, prompt.prefix).decode()
        assert self.LINES.endswith("\n" + before)
        assert 100 <= len(prompt.prefix) <= 200

    @pytest.mark.parametrize("cursor", range(3990, 4010, 2))
    def test_dense_text_still_fills_half_of_it(self, tokenizer: Tokenizer, cursor: int) -> None:
        """Text of more than a token a character, wherever the strides begin."""
        prompt = build_prompt("\u4e2d" * 5000, cursor, tokenizer, None, Window(200, 50))
        assert 100 <= len(prompt.prefix) + 3 <= 203

    def test_it_ends_at_a_lines_end(self, tokenizer: Tokenizer) -> None:
        prompt = build_prompt(self.LINES, 0, tokenizer, None, Window(200, 50))
        after = spelt(tokenizer, prompt.suffix).decode()
        assert self.LINES.startswith(after)
        assert after.endswith("\n")

    def test_typing_keeps_its_beginning_for_a_while(self, tokenizer: Tokenizer) -> None:
        """Otherwise every key would throw away what the cache holds."""
        begins = {
            build_prompt(self.LINES, cursor, tokenizer, None, Window(400, 50)).ids[:20]
            for cursor in range(50_000, 50_100)
        }
        assert len(begins) <= 2

    def test_a_huge_file_is_never_tokenized_whole(self, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
        encoded: list[int] = []
        encode = Tokenizer.encode

        def counting(self: Tokenizer, text: str) -> list[int]:
            encoded.append(len(text))
            return encode(self, text)

        monkeypatch.setattr(Tokenizer, "encode", counting)
        text = "x" * 20_000_000
        assert build_prompt(text, len(text) // 2, tokenizer, detect(tokenizer)).prefix
        assert sum(encoded) < 100_000

    @pytest.mark.parametrize("room", [16, 100, 512, 903, 904, 5000])
    def test_it_shrinks_to_the_contexts_room(self, tokenizer: Tokenizer, room: int) -> None:
        window = DEFAULT_WINDOW.within(room)
        assert window.prefix + window.suffix <= DEFAULT_WINDOW.prefix + DEFAULT_WINDOW.suffix
        prompt = build_prompt(self.LINES, 40_000, tokenizer, detect(tokenizer), window)
        assert len(prompt.ids) <= room
