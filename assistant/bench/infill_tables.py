"""The tables of `bench infill`."""

from assistant.bench.tables import METHOD, Column, number

_POLICY = Column("policy", lambda row: str(row["policy"]), left=True)
_INFILLED = (
    Column("holes", number("tasks", "d")),
    Column("exact match", number("exact_match", ".3f")),
    Column("edit similarity", number("edit_similarity", ".3f")),
    Column("duplicates", number("duplicates", "d")),
    Column("nothing shown", number("nothing", "d")),
)
INFILL_COLUMNS = (
    METHOD,
    _POLICY,
    Column("pass@1", number("pass_at_1", ".3f")),
    Column("95 % interval", lambda row: " to ".join(format(end, ".3f") for end in row["pass_at_1_interval"] or ())),
    *_INFILLED,
    Column("p50 ms", number("p50_ms", ".0f")),
    Column("p95 ms", number("p95_ms", ".0f")),
)
INFILL_GROUP_COLUMNS = (
    METHOD,
    _POLICY,
    Column("of", lambda row: str(row.get("language") or row.get("kind")), left=True),
    *_INFILLED,
)
