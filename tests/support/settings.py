"""Configuration files as people and fuzzers write them: valid values of keys, and TOML in every style."""

from typing import Any

from hypothesis import strategies as st

from assistant.config.example import value_text
from assistant.config.keys import KEYS, Key, Path, quoted

Assigned = dict[Path, Any]
"""key -> value"""
SECTIONS = sorted({section for section, _ in KEYS})
_PLAIN = st.characters(exclude_categories=["Cs", "Cc"])


class _Raw(str):
    """A value that is TOML already."""

    __slots__ = ()


def valid_value(key: Key) -> st.SearchStrategy[Any]:
    """Values that fit a key."""
    meta, low, high = key.meta, key.meta.ge or key.meta.gt or 0, key.meta.le or 0
    if key.choices or key.kind is str:
        return st.sampled_from(key.choices or (("auto", "cpu", "cuda:1") if meta.pattern else ("one", "two")))
    if key.is_list:
        return st.lists(st.sampled_from(["*.log", "build/", "a/**/b", "secret.*"]), max_size=3).map(tuple)
    if key.kind is bool:
        return st.booleans()
    if key.kind is int:
        return st.integers(int(low), int(high))
    return st.floats(float(low), float(high), exclude_min=meta.gt is not None)


def assignments(*, project: bool = False) -> st.SearchStrategy[Assigned]:
    """Some keys with valid values; with `project`, such as a project's file may set."""
    keys = {path: key for path, key in KEYS.items() if not (project and key.project == "never")}
    return st.sets(st.sampled_from(sorted(keys)), max_size=8).flatmap(
        lambda chosen: st.fixed_dictionaries({path: valid_value(keys[path]) for path in sorted(chosen)})
    )


def toml_of(values: Assigned) -> str:
    """A file with these assignments, in tables."""
    tables = {path[:-1] for path in values}
    return "\n".join(
        line
        for table in sorted(tables)
        for line in (
            f"[{'.'.join(map(_part, table))}]",
            *(f"{_part(path[-1])} = {value_text(value)}" for path, value in values.items() if path[:-1] == table),
        )
    )


def _part(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else quoted(name)


names = st.one_of(
    st.sampled_from([*SECTIONS, "languages", "files", "python", "version", *sorted({name for _, name in KEYS})]),
    st.text(_PLAIN, max_size=6),
)
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(_PLAIN, max_size=8),
    st.sampled_from(["1979-05-27 07:32:00", "07:32:00", '"""a"b\n[x]"""', "'''\n#'''", "'lit#'", "0x1F", "1_000"]).map(
        _Raw
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
tables = st.dictionaries(names, values, max_size=5)
"""what TOML documents hold"""


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A valid TOML document: tables, dotted keys, inline tables, arrays of tables, comments and blanks."""
    lines: list[str] = []
    top = draw(tables)
    for name, value in top.items():
        if not isinstance(value, dict):
            lines.append(_assignment(draw, [name], value))
    for name, value in top.items():
        if isinstance(value, dict):
            _table(draw, [name], value, lines)
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


def _table(draw: st.DrawFn, path: list[str], table: dict[str, Any], lines: list[str]) -> None:
    style = draw(st.sampled_from(["header", "inline", "array"])) if len(path) == 1 else "header"
    if style == "inline":
        # An assignment belongs to the table above it: only the top may have it, so it comes before all headers.
        lines.insert(0, _assignment(draw, path, table))
        return
    dotted = _dots(draw, path)
    lines.append(f"[[{dotted}]]" if style == "array" else f"[{dotted}]")
    lines.extend(_assignment(draw, [name], value) for name, value in table.items() if not isinstance(value, dict))
    for name, value in table.items():
        if isinstance(value, dict) and style == "header":
            _table(draw, [*path, name], value, lines)


def _assignment(draw: st.DrawFn, path: list[str], value: Any) -> str:
    blank = draw(st.sampled_from(["", " ", "\t"]))
    comment = draw(st.sampled_from(["", "", " # a = 1 ] }", "\n# b = 'x", "\n\n  "]))
    return f"{blank}{_dots(draw, path)}{blank}={blank}{_value(draw, value)}{comment}"


def _dots(draw: st.DrawFn, path: list[str]) -> str:
    return draw(st.sampled_from([".", " . ", "\t."])).join(map(_part, path))


def _value(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        inner = [f"{_part(name)} = {_value(draw, item)}" for name, item in value.items()]
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        gap = draw(st.sampled_from(["", " ", "\n", " # ]\n"]))
        return "[" + gap + f",{gap}".join(_value(draw, item) for item in value) + gap + "]"
    return str(value) if isinstance(value, _Raw) else value_text(value)
