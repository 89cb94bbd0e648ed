"""What is kept between requests: rows of target and head, sessions in a budget, suggestions that are typed along."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.config import Settings
from assistant.config.declaration import Daemon
from assistant.daemon.anchor import Anchor, Place, Reader, prompt_at
from assistant.daemon.prompt import DEFAULT_WINDOW, Surroundings, Window, build_prompt
from assistant.daemon.sessions import SessionPool
from assistant.daemon.typed import Rest, TypedCache
from assistant.engine.types import Prompt
from models.fim import detect
from tests.support.rooms import CODE, Room, alone, tiny_engine
from tests.support.tiny_tokenizer import tiny_tokenizer

HOLE = CODE.index("    return self")
READER = Reader(tiny_tokenizer(), detect(tiny_tokenizer()), DEFAULT_WINDOW)
TEXT = st.text(st.sampled_from("ab_ \n\t().:='1ü🙂"), max_size=60)


def spelt(prompt: Prompt) -> bytes:
    """All that a prompt says, in the order in which the model reads it."""
    return tiny_tokenizer().join(prompt.ids) + prompt.forced


class TestAnchors:
    @settings(max_examples=300)
    @given(before=TEXT, after=TEXT, typed=st.lists(st.text("ab (\n=ü", min_size=1, max_size=3), max_size=8))
    def test_while_one_types_the_prompt_begins_as_it_did(self, before: str, after: str, typed: list[str]) -> None:
        prompt, anchor = prompt_at(Place(before + after, len(before)), READER, None)
        text = before
        for piece in typed:
            text += piece
            prompt, same = prompt_at(Place(text + after, len(text)), READER, anchor)
            if anchor is None or not after.strip():
                return
            assert same is anchor
            assert prompt.ids[: len(anchor.prompt.ids)] == anchor.prompt.ids
            assert spelt(prompt) == self.said(anchor, text)

    @pytest.mark.parametrize("after", ["\n\nprint(first)\n", ")\n", "\n"])
    def test_what_an_editor_closes_behind_the_cursor_does_not_part_it_from_its_anchor(self, after: str) -> None:
        reader = replace(READER, closers=True)
        _, anchor = prompt_at(Place("import os\n" + after, 10), reader, None)
        assert anchor is not None
        for typed, closed in [("f", ""), ("f(", ")"), ("f([", "])"), ('f(["', '"])'), ('f([""]', ")"), ('f([""])', "")]:
            text = "import os\n" + typed
            prompt, same = prompt_at(Place(text + closed + after, len(text)), reader, anchor)
            assert same is anchor
            assert spelt(prompt) == self.said(anchor, text)

    @pytest.mark.parametrize(("typed", "behind"), [("f", ")"), ("f(", ") "), ("f(", "x)"), ("f(", "]"), ("f(", ")x")])
    def test_what_else_stands_there_is_read(self, typed: str, behind: str) -> None:
        reader, after = replace(READER, closers=True), "\nprint(first)\n"
        _, anchor = prompt_at(Place("import os\n" + after, 10), reader, None)
        text = "import os\n" + typed
        place = Place(text + behind + after, len(text))
        prompt, other = prompt_at(place, reader, anchor)
        assert other is not None
        assert other is not anchor
        assert spelt(prompt) == self.said(other, text)
        assert other.after == behind + after
        strict, _ = prompt_at(Place("import os\nf(" + ")" + after, 12), READER, anchor)
        assert b")" + after.encode() in spelt(strict), "a reader that was not told so leaves nothing out"

    @staticmethod
    def said(anchor: Anchor, before: str) -> bytes:
        """The anchor's text around the hole, then what stands between it and the cursor."""
        return (anchor.before + anchor.after + before[len(anchor.before) :]).encode()

    @settings(max_examples=300)
    @given(before=TEXT, after=TEXT, data=st.data())
    def test_whatever_is_edited_the_prompt_says_the_text_around_the_cursor(
        self, before: str, after: str, data: st.DataObject
    ) -> None:
        """An anchor that does not hold any more is not used: what the prompt says is always this text."""
        _, anchor = prompt_at(Place(before + after, len(before)), READER, None)
        text = before + after
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        text = text[:start] + data.draw(TEXT) + text[end:]
        cursor = data.draw(st.integers(0, len(text)))
        prompt, _ = prompt_at(Place(text, cursor), READER, anchor)
        tokenizer = tiny_tokenizer()
        assert tokenizer.join(prompt.prefix) + prompt.forced == text[:cursor].encode()
        assert tokenizer.join(prompt.suffix).decode() == (text[cursor:] if text[cursor:].strip() else "")

    @settings(max_examples=200)
    @given(lines=st.lists(st.text("ab =(ü", max_size=12), min_size=8, max_size=30), data=st.data())
    def test_in_a_long_text_it_says_a_part_of_it_that_touches_the_cursor(
        self, lines: list[str], data: st.DataObject
    ) -> None:
        window = Window(data.draw(st.integers(2, 24)), data.draw(st.integers(0, 12)))
        small = Reader(READER.tokenizer, READER.fim, window, room=60)
        text, anchor = "\n".join(lines * 3), None
        for _ in range(4):
            cursor = data.draw(st.integers(len(text) // 3, len(text)))
            for piece in data.draw(st.lists(st.sampled_from(["a", "\n", " =", "("]), min_size=1, max_size=4)):
                text = text[:cursor] + piece + text[cursor:]
                cursor += len(piece)
                prompt, anchor = prompt_at(Place(text, cursor), small, anchor)
                before = small.tokenizer.join(prompt.prefix) + prompt.forced
                after = small.tokenizer.join(prompt.suffix)
                assert text[:cursor].encode().endswith(before)
                assert text[cursor:].encode().startswith(after)
                assert len(prompt.ids) <= small.room

    def test_a_line_without_an_end_is_anchored_within(self) -> None:
        text = "x = [" + "'a', " * 2000
        prompt, anchor = prompt_at(Place(text + "\ny\n", len(text)), READER, None)
        more, same = prompt_at(Place(text + "'b'\ny\n", len(text) + 3), READER, anchor)
        assert anchor is not None
        assert anchor is same
        assert more.ids[: len(anchor.prompt.ids)] == prompt.ids[: len(anchor.prompt.ids)]

    def test_typing_far_moves_the_anchor(self) -> None:
        _, anchor = prompt_at(Place("x\ny\n", 2), READER, None)
        text = "x\n" + "value = 1\n" * 100
        _, other = prompt_at(Place(text + "y\n", len(text)), READER, anchor)
        assert other is not anchor

    def test_other_files_are_looked_for_with_an_anchor_and_stay_while_one_types(self) -> None:
        looks: list[int] = []

        def look_around() -> Surroundings:
            looks.append(1)
            return Surroundings("house", (("b.py", f"third = {len(looks)}\n"),), "a.py")

        prompt, anchor = prompt_at(Place(CODE, HOLE), READER, None, look_around)
        assert anchor is not None
        assert b"third = 1" in READER.tokenizer.join(prompt.ids)
        more, _ = prompt_at(Place(CODE[:HOLE] + "r" + CODE[HOLE:], HOLE + 1), READER, anchor, look_around)
        assert more.ids[: len(anchor.prompt.ids)] == anchor.prompt.ids
        assert len(looks) == 1

    def test_another_window_needs_another_anchor(self) -> None:
        _, anchor = prompt_at(Place(CODE, HOLE), READER, None)
        small = Reader(READER.tokenizer, READER.fim, Window(20, 10))
        prompt, other = prompt_at(Place(CODE, HOLE), small, anchor)
        assert other is not anchor
        assert prompt.ids == build_prompt(CODE, HOLE, READER.tokenizer, READER.fim, small.window).ids


class TestOneTypedCharacter:
    @pytest.mark.parametrize("method", ["plain", "eagle2", "hybrid", "ngram"])
    @pytest.mark.parametrize("typed", ["r", " ", "(", "\n", "x = fir"])
    def test_computes_a_few_rows_of_target_and_head(self, method: str, typed: str) -> None:
        """The text after the cursor is long; without an anchor all of it would be read again."""
        room = Room(chunk=64)
        text = CODE * 2 + CODE[:HOLE]
        after = CODE * 6
        room.ask(text + after, len(text), method=method, typed=False)
        room.settle()
        for size in range(1, len(typed) + 1):
            answer = room.ask(text + typed[:size] + after, len(text) + size, method=method, typed=False)
            room.settle()
            first = answer.steps[0]
            assert first.prompt_tokens > 150
            assert first.prompt_tokens - first.reused <= 32
            assert first.prompt_tokens - first.draft_reused <= 32

    def test_the_tokens_are_those_of_the_same_prompt_without_anything_kept(self) -> None:
        room = Room()
        texts = [CODE[:HOLE] + "    retu"[:size] for size in range(9)]
        for text in texts:
            answer = room.ask(text + CODE[HOLE:], len(text), typed=False)
            room.settle()
            assert answer.tokens == alone(text + CODE[HOLE:], len(text), 12)

    def test_an_edit_in_the_middle_keeps_the_rows_before_it(self) -> None:
        room = Room()
        first = room.ask(CODE * 4, len(CODE) * 4, typed=False)
        room.settle()
        changed = CODE * 2 + CODE.replace("second", "third") + CODE
        second = room.ask(changed, len(changed), typed=False)
        room.settle()
        total = first.done.prompt_tokens
        assert total * 0.5 < second.done.cached_tokens < total * 0.8
        assert second.tokens == alone(changed, len(changed), 12)


class TestPool:
    def test_the_least_recently_used_go_first_when_bytes_run_out(self) -> None:
        engine = tiny_engine()
        one = engine.session("eagle2").memory_bytes
        pool = SessionPool(engine.session, 3 * one, most=100)
        kept = {}
        for path in "abc":
            kept[path] = pool.lease("c", path, "eagle2")
            pool.release(kept[path])
        assert pool.lease("c", "a", "eagle2") is kept["a"]
        pool.release(kept["a"])
        pool.release(pool.lease("c", "d", "eagle2"))
        assert pool.cache_bytes <= 3 * one
        assert pool.lease("c", "a", "eagle2") is kept["a"]
        assert pool.lease("c", "c", "eagle2") is kept["c"]
        assert pool.lease("c", "b", "eagle2") is not kept["b"]

    def test_no_more_documents_are_kept_than_configured(self) -> None:
        room = Room(settings=Settings(daemon=Daemon(documents=3)))
        for number in range(8):
            room.ask(CODE, HOLE, path=f"{number}.py")
        room.settle()
        assert len(room.scheduler._workshop._pool) == 3  # type: ignore[arg-type]

    def test_a_leased_session_is_nobody_elses(self) -> None:
        engine = tiny_engine()
        pool = SessionPool(engine.session, 0, most=1)
        first, second = pool.lease("c", "a", "plain"), pool.lease("d", "a", "plain")
        assert first is not second
        pool.release(first)
        assert len(pool) == 1
        pool.forget("d", "a")
        assert len(pool) == 1
        pool.release(second)
        assert len(pool) == 0

    def test_another_client_goes_on_with_a_files_idle_session(self) -> None:
        engine = tiny_engine()
        pool = SessionPool(engine.session, 1 << 30, most=9)
        first = pool.lease("c", "a", "plain")
        pool.release(first)
        assert pool.lease("d", "a", "plain") is first
        assert pool.lease("d", "a", "eagle2") is not first


class TestTyping:
    def test_along_a_suggestion_and_back_needs_no_model(self) -> None:
        room = Room()
        text, after = CODE[:HOLE], CODE[HOLE:]
        shown = room.ask(text + after, len(text)).done_after(room)
        assert len(shown.text) >= 4
        steps = room.scheduler.status().steps
        for size in [1, 2, 3, 2, 1, 0, 3]:
            typed = text + shown.text[:size]
            answer = room.ask(typed + after, len(typed))
            assert answer.done.source == "typed"
            assert answer.done.text == shown.text[size:]
            assert "".join(step.text for step in answer.steps) == answer.done.text
            assert (answer.done.finish, answer.tokens) == (shown.finish, ())
        assert room.scheduler.status().steps == steps
        assert not room.scheduler.turn()

    def test_it_takes_its_documents_running_request_away(self) -> None:
        room = Room()
        room.ask(CODE, HOLE).done_after(room)
        running = room.ask(CODE, HOLE + 3, tokens=40)
        room.settle(lambda: bool(running.steps))
        answer = room.ask(CODE, HOLE)
        assert answer.done.source == "typed"
        room.settle()
        assert running.done.finish == "superseded"

    @pytest.mark.parametrize("change", ["text before", "text after", "path", "tokens", "temperature", "asked anew"])
    def test_anything_else_asks_the_model(self, change: str) -> None:
        room = Room()
        room.ask(CODE, HOLE).done_after(room)
        answer = {
            "text before": lambda: room.ask(CODE.replace("os", "re"), HOLE),
            "text after": lambda: room.ask(CODE + "\n", HOLE),
            "path": lambda: room.ask(CODE, HOLE, path="b.py"),
            "tokens": lambda: room.ask(CODE, HOLE, tokens=13),
            "temperature": lambda: room.ask(CODE, HOLE, temperature=0.5),
            "asked anew": lambda: room.ask(CODE, HOLE, typed=False),
        }[change]()
        assert not answer.ended
        assert answer.done_after(room).source == "model"

    @settings(max_examples=200)
    @given(data=st.data())
    def test_it_answers_what_a_list_of_all_suggestions_would(self, data: st.DataObject) -> None:
        """Against a model that keeps texts as they are: no hash, no order, nothing to get wrong."""
        cache, known = TypedCache(), list[tuple[str, str, str]]()
        short = st.text("ab", max_size=3)
        for _ in range(data.draw(st.integers(1, 12))):
            before, after = data.draw(short), data.draw(st.sampled_from(["", "x"]))
            if data.draw(st.booleans()):
                text = data.draw(short)
                known = [k for k in known if k[:2] != (before, after)] + [(before, after, text)]
                cache.remember("p", before + after, len(before), "s", Rest(text, "stop", "", 1.0))
            fits = [
                text[len(before) - len(old) :]
                for old, behind, text in reversed(known)
                if behind == after
                and before.startswith(old)
                and text.startswith(before[len(old) :])
                and (len(before) - len(old) < len(text) or (before == old and not text))
            ]
            found = cache.find("p", before + after, len(before), "s")
            assert (found.text if found else None) == (fits[0] if fits else None)
            assert cache.find("p", before + after, len(before), "t") is None
            assert cache.find("q", before + after, len(before), "s") is None

    def test_it_stays_small(self) -> None:
        cache, random = TypedCache(), Random(0)
        for number in range(5000):
            text = "x" * random.randrange(99)
            cache.remember(str(number % 300), text, len(text), "s", Rest("yy", "stop", "", 1.0))
        assert len(cache._documents) <= 64
        assert max(map(len, cache._documents.values())) <= 24


class TestTypingAhead:
    def test_a_key_that_is_what_is_being_written_takes_the_completion_over(self) -> None:
        lone = Room()
        whole = lone.ask(CODE, HOLE, version=1).done_after(lone)
        steps = lone.scheduler.status().steps
        room = Room()
        answers = [room.ask(CODE, HOLE, version=1)]
        for size in (1, 2, 3):
            room.settle(lambda: len(answers[0].done_text) >= 3 or answers[0].ended)
            typed = CODE[:HOLE] + whole.text[:size]
            answers.append(room.ask(typed + CODE[HOLE:], len(typed), version=1 + size))
            room.turns(1)
        room.settle(lambda: answers[-1].ended)
        assert [answer.done.finish for answer in answers[:-1]] == ["superseded"] * 3
        assert answers[-1].done.text == whole.text[3:]
        assert "".join(step.text for step in answers[-1].steps) == whole.text[3:]
        assert answers[-1].tokens == answers[-1].done.tokens == whole.tokens
        assert room.scheduler.status().steps == steps
        assert room.scheduler.status().superseded_steps == 0

    def test_any_other_key_begins_anew(self) -> None:
        room = Room()
        first = room.ask(CODE, HOLE, version=1)
        room.settle(lambda: len(first.done_text) >= 3)
        typed = CODE[:HOLE] + ("x" if first.done_text[0] != "x" else "y")
        second = room.ask(typed + CODE[HOLE:], len(typed), version=2)
        assert second.done_after(room).tokens == alone(typed + CODE[HOLE:], len(typed), 12)

    def test_accepting_before_what_follows_is_ready_takes_that_over(self) -> None:
        room = Room()
        shown = room.ask(CODE, HOLE, version=1).done_after(room)
        room.settle(lambda: room.scheduler._desk.board.running == 1)
        text = CODE[:HOLE] + shown.text
        answer = room.ask(text + CODE[HOLE:], len(text), version=2)
        assert answer.done_after(room).text == alone_text(text + CODE[HOLE:], len(text), 12)


class TestAcceptance:
    def test_the_state_after_it_is_prepared_while_nobody_waits(self) -> None:
        room = Room()
        shown = room.ask(CODE, HOLE, version=3).done_after(room)
        room.settle()
        text = CODE[:HOLE] + shown.text
        answer = room.ask(text + CODE[HOLE:], len(text), version=4)
        assert answer.done.source == "typed"
        assert answer.done.text == alone_text(text + CODE[HOLE:], len(text), 12)

    def test_who_wants_no_work_ahead_gets_none(self) -> None:
        room = Room(settings=Settings(daemon=Daemon(prefetch=False)))
        room.ask(CODE, HOLE, version=3).done_after(room)
        assert not len(room.scheduler._desk.board)

    def test_a_key_that_comes_meanwhile_waits_for_one_turn_at_most(self) -> None:
        room = Room()
        room.ask(CODE, HOLE, version=3).done_after(room)
        room.turns(3)
        answer = room.ask(CODE, HOLE + 2, version=4, typed=False)
        room.turns(1)  # the prefetch is ended
        room.turns(1)
        assert room.scheduler._desk.board.running == 1
        assert answer.done_after(room).finish in {"stop", "length"}


def alone_text(text: str, cursor: int, tokens: int) -> str:
    room = Room()
    return room.ask(text, cursor, tokens=tokens).done_after(room).text
