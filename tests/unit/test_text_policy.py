"""The text policy: what is shown of what a model writes, case by case."""

import pytest

from assistant.daemon.text import Policy, Reason, Settings, Verdict

CURSOR = "‸"


def show(
    document: str, written: str, language: str = "python", *, stopped: bool = False, multiline: bool | None = None
) -> Verdict:
    """The verdict on `written` at the mark in `document`, token by token."""
    cursor = document.index(CURSOR)
    text = document.replace(CURSOR, "")
    settings = Settings(multiline=multiline)
    once = Policy.begin(text, cursor, language, settings).take(written, final=True, stopped=stopped)
    growing = Policy.begin(text, cursor, language, settings)
    shown = ""
    for at in range(0, len(written), 3):
        verdict = growing.take(written[at : at + 3], final=False)
        assert verdict.text.startswith(shown)
        shown = verdict.text
    assert growing.take("", final=True, stopped=stopped) == once
    assert once.finished
    return once


def golden(*cases: tuple[str, str, str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("language", "document", "written", "expected"), cases)


class TestRestOfLine:
    @golden(
        ("python", "foo(‸)\n", "a, b)\nbar()\n", "a, b"),
        ("python", "foo(‸)\n", "a).bar(b)\n", "a).bar(b"),
        ("python", "foo(bar(‸))\n", "1)) + 2\n", "1"),
        ("python", "x = [‸]\n", "1, 2]\n", "1, 2"),
        ("python", "x = d[‸] + 1\n", "'a'] + 1\ny\n", "'a'"),
        ("python", "x = foo(a, ‸, b)\n", "c, b)\nfoo", "c"),
        ("python", 'x = y + ‸"db"\n', 'z + "db"  # base\n', "z + "),
        ("python", "return ''.join([‸ for x in y])\n", "str(x) for x in y])\n", "str(x)"),
        ("javascript", "items.map((x) => ‸);\n", "x * 2);\nfoo();\n", "x * 2"),
        ("javascript", "if (‸) {\n}\n", "a && (b || c)) {\n  foo();\n", "a && (b || c)"),
        ("go", 'fmt.Printf("%d"‸)\n', ", n)\n}\n", ", n"),
        ("rust", "let x: Vec<&'a str> = vec![‸];\n", '"a", "b"];\n', '"a", "b"'),
        ("java", "List<String> x = new ArrayList<>(‸);\n", "y);\n", "y"),
    )
    def test_what_an_editor_closed_is_not_closed_again(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected

    @golden(
        ("python", "print('‸')\n", "it's')\nx", "it"),
        ("python", 'print("‸")\n', 'say \\"hi\\"")\n', 'say \\"hi\\"'),
        ("python", 'x = f"{a[‸]}"\n', '0]}"\n', "0"),
        ("javascript", "const s = `‸`;\n", "hello ${name}`;\n", "hello ${name}"),
        ("shellscript", 'echo "‸"\n', '$HOME/x"\nls\n', "$HOME/x"),
        ("python", 'html = "<a href=‸"\n', "'x'>\"\ny", "'x'>"),
        ("python", 'q = "SELECT * FROM ‸"\n', 'users WHERE id = 1"\n', "users WHERE id = 1"),
    )
    def test_a_string_ends_where_it_is_closed_already(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected

    def test_nothing_but_the_rest_of_the_line_is_nothing(self) -> None:
        verdict = show("x = foo(‸a, b)\n", "a, b)\n")
        assert (verdict.text, verdict.reason) == ("", Reason.REPEATS_REST)

    def test_a_text_that_the_model_ended_is_joined_as_it_is(self) -> None:
        assert show("x = ‸y\n", "a + ", stopped=True).text == "a + "

    def test_the_end_of_a_text_that_begins_the_rest_goes(self) -> None:
        assert show("x = (a‸ + zeta * 2)\n", " - b + zeta", stopped=True).text == " - b"

    def test_a_statement_does_not_run_into_the_rest_of_another(self) -> None:
        verdict = show("x = ‸foo(y)\n", "bar(z)\nw = 2\n")
        assert (verdict.text, verdict.reason) == ("", Reason.MISFIT)


class TestFollowingLines:
    @golden(
        ("python", "x = 5\n‸\ny = 2\n", "y = 2\nz = 3\n", ""),
        ("python", "x = 5\n‸\ny = 2\n", "y=2\n", ""),
        ("python", "if a:\n    retu‸\n    return 5\n", "rn 5\n", ""),
        ("javascript", "a();\n‸\nb();\n", "b();\n", ""),
        ("markdown", "# Title\n\n‸\nSecond line here.\n", "Second line here.\n", ""),
    )
    def test_the_next_line_is_not_written_again(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        verdict = show(document, written, language)
        assert (verdict.text, verdict.reason) == (expected, Reason.REPEATS_NEXT)

    @golden(
        ("python", "def f(x):\n    ‸\n\ny = 2\n", "a = 1\n    return a\n\ny = 2\n", "a = 1\n    return a"),
        ("python", "class A:\n    ‸\n\nclass B:\n    pass\n", "x = 1\n\nclass B:\n    pass\n", "x = 1"),
        ("javascript", "function f() {\n  ‸\n}\n", "b();\n  c();\n}\nfoo", "b();\n  c();"),
        ("go", "func f() {\n\t‸\n}\n\nfunc g() {\n", "a()\n\tb()\n}\n\nfunc g() {\n", "a()\n\tb()"),
    )
    def test_a_block_ends_where_what_follows_begins(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected

    def test_what_is_cut_leaves_no_block_without_a_body(self) -> None:
        document = "def f(n):\n    ‸\n    return n\n"
        assert show(document, "if n:\n        n = 1\n    else:\n    return n\n").text == "if n:\n        n = 1"

    def test_two_lines_in_a_row_from_further_down_are_a_repetition(self) -> None:
        document = "def f():\n    ‸\n\na = 1\nb = 2\nc = 3\n"
        assert show(document, "x = 1\nb = 2\nc = 3\n").text == "x = 1"


class TestAbove:
    def test_the_line_above_is_not_written_again(self) -> None:
        verdict = show("items.append(x)\n‸\n", "items.append(x)\nitems.append(x)\n")
        assert (verdict.text, verdict.reason) == ("", Reason.REPEATS_ABOVE)

    def test_a_block_that_goes_round_in_circles_ends(self) -> None:
        verdict = show("def f():\n    ‸\n", "call(x)\n    call(x)\n    call(x)\n")
        assert (verdict.text, verdict.reason) == ("call(x)", Reason.LOOP)

    def test_a_line_that_goes_round_in_circles_is_cut(self) -> None:
        verdict = show("x = ‸\n", "very, " * 40)
        assert verdict.reason is Reason.LOOP
        assert len(verdict.text) < 40


class TestShape:
    @golden(
        ("python", "x = ‸\n", "5\ny = 6\n", "5"),
        ("python", "a = 1\n‸\n", "b = 2\nc = 3\n", "b = 2"),
        ("python", "a = 1\n‸\n", "# two\nb = 2\nc = 3\n", "# two\nb = 2"),
        ("python", "a = 1\n‸\n", "b = foo(\n    1,\n    2,\n)\nc = 3\n", "b = foo(\n    1,\n    2,\n)"),
        ("python", "a = 1\n‸\n", "b = 1 + \\\n    2\nc\n", "b = 1 + \\\n    2"),
        ("python", "a = 1\n‸\n", 'b = """\nx\n"""\nc\n', 'b = """\nx\n"""'),
        ("javascript", "a();\n‸\n", "if (x) {\n  b();\n}\nc();\n", "if (x) {\n  b();\n}"),
        ("shellscript", "a\n‸\n", "for x in *; do\n  echo $x\ndone\nls\n", "for x in *; do\n  echo $x\ndone"),
    )
    def test_a_statement_is_one_line_unless_it_leaves_something_open(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected

    @golden(
        ("python", "a()\n‸\nz()\n", "for x in y:\n    b()\n    c()\nd()\n", "for x in y:\n    b()\n    c()"),
        ("python", "a()\n‸\nz()\n", "if x:\n    b()\nelse:\n    c()\nd()\n", "if x:\n    b()\nelse:\n    c()"),
        ("python", "a()\n‸\n    z()\n", "for x in y:\n    b()\n", "for x in y:"),
        ("python", "a()\n‸\n", "@property\ndef f(self):\n    return 1\nb()\n", "@property\ndef f(self):\n    return 1"),
        ("javascript", "f(() => {\n  ‸\n    g();\n  }\n});\n", "if (x) {\n    h();\n  }\n", "if (x) {"),
    )
    def test_a_statement_brings_its_body_unless_it_is_there(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected

    @golden(
        ("python", 'def f(x):\n    """Doc."""\n    ‸\n', "y = x\n    return y\n\n\ndef g():\n", "y = x\n    return y"),
        ("python", "if x:‸\n", "\n    a()\n    b()\nc()\n", "\n    a()\n    b()"),
        ("rust", "fn f() {\n    ‸", "a();\n    b();\n}\n\nfn g() {\n", "a();\n    b();\n}"),
        ("shellscript", "if x; then\n  ‸\nfi\n", "echo a\n  echo b\nfi\n", "echo a\n  echo b"),
        ("cpp", "void f() {\n  ‸\n}\n", "for (;;) {\n    x();\n  }\n  y();\n}\n", "for (;;) {\n    x();\n  }\n  y();"),
    )
    def test_an_empty_block_gets_its_body_to_the_end(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected

    def test_one_line_at_most_where_the_user_says_so(self) -> None:
        assert show("def f(x):\n    ‸\n", "a = 1\n    return a\n", multiline=False).text == "a = 1"

    @golden(
        ("python", "x = 1  # the ‸\ny\n", "answer\nz = 3\n", "answer"),
        ("python", 'def f():\n    """Return ‸"""\n', 'the answer."""\n    return 42\n', "the answer."),
        ("python", 'def f():\n    """Return ‸\n    """\n', 'the answer."""\n    return 42\n', "the answer."),
        ("python", 'def f():\n    """Return x.\n\n    ‸\n    """\n', "Args:\n        x: y\n", "Args:"),
        ("javascript", "/* it's ‸ */\nx();\n", "fine */\nx();\n", "fine"),
        ("markdown", "It's a ‸\n\nNext\n", "nice day :) (really)\nfoo\n", "nice day :) (really)"),
    )
    def test_text_in_comments_and_strings_ends_with_its_line(
        self, language: str, document: str, written: str, expected: str
    ) -> None:
        assert show(document, written, language).text == expected


class TestWholeLines:
    """The cursor stands in the indentation of a line: lines go before it."""

    def test_a_line_brings_its_line_end(self) -> None:
        assert show("def f():\n‸    return x\n", "    x = 1\n    return x\n").text == "    x = 1\n"

    def test_indentation_before_the_cursor_is_there_again_behind_the_line(self) -> None:
        assert show("def f():\n    ‸return x\n", "x = 1\n    return x\n").text == "x = 1\n    "

    def test_a_part_of_a_line_joins_it(self) -> None:
        assert show("def f():\n    ‸foo()\n", "x = ", stopped=True).text == "x = "

    def test_the_line_itself_is_not_written_again(self) -> None:
        assert show("def f():\n‸    return x\n", "    return x\n").reason is Reason.REPEATS_NEXT


class TestLayout:
    @golden(
        ("go", "func f() {\n\tx()\n\ty()\n\t‸\n}\n", "if a {\n        b()\n    }\n", "if a {\n\t\tb()\n\t}"),
        ("python", "if x:\n  a()\nif y:\n  ‸\n", "if b:\n\t\tc()\nd\n", "if b:\n    c()"),
        ("python", "if x:\n\ta()\n‸\n", "def f():\n    b()\nd()\n", "def f():\n\tb()"),
    )
    def test_indentation_is_the_files(self, language: str, document: str, written: str, expected: str) -> None:
        assert show(document, written, language).text == expected

    def test_blank_lines_before_a_statement_go(self) -> None:
        assert show("a()\n‸\n", "\n\nb()\nc()\n").text == "b()"

    def test_carriage_returns_are_not_part_of_a_text(self) -> None:
        assert show("if x:\n    ‸\n", "a()\r\n    b()\r\n\r\nc()\r\n").text == "a()\n    b()"

    def test_white_space_at_the_end_goes(self) -> None:
        assert show("x = ‸\n", "5   \n").text == "5"

    def test_nothing_but_white_space_is_nothing(self) -> None:
        verdict = show("x = ‸\n", "  \n\n\n", stopped=True)
        assert (verdict.text, verdict.reason) == ("", Reason.EMPTY)

    @golden(
        ("python", "naïve = ‸\n", "'中文🙂'\nx\n", "'中文🙂'"),
        ("python", "x = '🙂‸'\n", "é'\n", "é"),
        ("python", "‸", "import os\nimport sys\n", "import os"),
        ("python", "x = 1\n‸", "", ""),
    )
    def test_any_text_anywhere(self, language: str, document: str, written: str, expected: str) -> None:
        assert show(document, written, language).text == expected


class TestMarkers:
    @pytest.mark.parametrize("marker", ["<|fim_middle|>", "<|endoftext|>", "<fim_prefix>", "[/INST]"])
    def test_a_special_token_that_is_spelt_ends_the_text(self, marker: str) -> None:
        verdict = show("x = ‸\n", f"5{marker}def f\n")
        assert (verdict.text, verdict.reason) == ("5", Reason.MARKER)

    def test_a_document_that_speaks_of_them_may_go_on(self) -> None:
        document = 'A = "<|fim_prefix|>"\nB = "<|fim_middle|>"\nx = ‸\n'
        assert show(document, '"<|fim_middle|>" + y\n').text == '"<|fim_middle|>" + y'


class TestStreaming:
    def test_generation_may_stop_as_soon_as_the_line_is_complete(self) -> None:
        growing = Policy.begin("x = \n", 4, "python", Settings())
        assert not growing.take("foo", final=False).finished
        assert growing.take("(1)\n", final=False) == Verdict("foo(1)", finished=True, reason=Reason.LINE)

    def test_words_are_shown_as_they_are_complete(self) -> None:
        growing = Policy.begin("x = \n", 4, "python", Settings())
        assert growing.take("alpha + be", final=False).text == "alpha +"

    def test_what_may_become_a_following_line_is_held_back(self) -> None:
        growing = Policy.begin("x = 1\n\ny = value\n", 6, "python", Settings())
        assert growing.take("y = value", final=False).text == ""
        assert growing.take(".size\n", final=False).text == "y = value.size"

    def test_a_reason_has_words(self) -> None:
        assert all(reason.words for reason in Reason if reason)


class TestFitting:
    @pytest.mark.parametrize(
        ("document", "written"),
        [
            ("def f():\n    if x:\n‸        b()\n", "    c()\n"),
            ("def f():\n    a()\n‸        b()\n", "    c()\n"),
            ("def f():\n    a()\n‸    b()\n", "        c()\n"),
            ("def f():\n    a()\n    ‸\n    b()\n", "return x\n"),
            ("def f():\n    a()\n‸    b()\n", "    raise X\n"),
            ("def f():\n    if x:\n‸            b()\n    c()\n", "            d()\n"),
            ("def f():\n    for x in y:\n        a()\n‸            b()\n", "    if z:\n"),
            ("def f():\n    if x:\n        a()\n    ‸\n    else:\n        b()\n", "d()\n"),
            ('def f():\n    """Doc."""\n‸    return b\n', 'if __name__ == "__main__":\n'),
            ('def f(\n    a,\n):\n    """Doc.\n\n    More.\n    """\n\n‸    return b\n', "def g():\n"),
            ("if x:\n    a()\n‸\nelif y:\n    b()\n", "else:\n    c()\n"),
            ("try:\n    a()\n‸\nexcept E:\n    b()\n", "finally:\n    c()\n"),
        ],
    )
    def test_a_line_that_cannot_stand_between_its_neighbours_is_nothing(self, document: str, written: str) -> None:
        verdict = show(document, written)
        assert (verdict.text, verdict.reason) == ("", Reason.MISFIT)

    @golden(
        ("python", "def f():\n    a()\n‸        b()\n", "    c()\n    if y:\n        z\n", "    c()\n    if y:\n"),
        ("python", "if x:\n    ‸\n    b()\n", "return x\nelse:\n    b()\n", "return x\nelse:"),
        ("python", "def f():\n    if x:\n‸        b()\n", "        c()\n", "        c()\n"),
        ("python", "def f():\n    a()\n‸        b()\n", "    if y:\n", "    if y:\n"),
        ("python", "def f():\n    if a:\n        ‸\n    b()\n", "return x\n", "return x"),
        ("python", "def f():\n    try:\n        ‸\n    except E:\n        b()\n", "return x\n", "return x"),
        ("python", "x = f(\n    a,\n    ‸\n)\n", "b,\n", "b,"),
        ("python", 'class A:\n    """Doc."""\n‸    return b\n', "def g():\n", "def g():\n"),
        ("python", 'def f():\n    """Doc."""\n    a()\n‸    return b\n', "def g():\n", "def g():\n"),
        ("python", 'def f():\n    """Doc."""\n‸    return b\n', "    b = 1\n", "    b = 1\n"),
        ("python", "try:\n    a()\nexcept E:\n    b()\n‸\nfinally:\n    c()\n", "else:\n    d()\n", "else:\n    d()"),
        ("python", "if x:\n    a()\n‸\nelse:\n    b()\n", "elif y:\n    c()\n", "elif y:\n    c()"),
        ("python", "if x:\n    a()\n‸\nelse:\n    b()\n", "elif y:\nelse:\n", ""),
        ("javascript", "switch (x) {\n  case 1:\n    ‸\n  case 2:\n    b();\n}\n", "return 1;\n", "return 1;"),
        ("go", "func f() {\n\tif x {\n\t\t‸\n\t}\n}\n", "return\n", "return"),
    )
    def test_a_line_that_can_is_shown(self, language: str, document: str, written: str, expected: str) -> None:
        assert show(document, written, language).text == expected
