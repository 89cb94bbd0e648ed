"""Light and dark: Textual's own colours, and one for each origin of a token."""

from textual.theme import Theme

DARK = Theme(
    name="eagle-dark",
    dark=True,
    primary="#4f9cf0",
    secondary="#9a7fe0",
    accent="#6cc7f5",
    success="#5fd38d",
    warning="#f0b54a",
    error="#f2716b",
    foreground="#e4e7ec",
    background="#14171c",
    surface="#191d24",
    panel="#232a34",
    variables={
        "origin-head": "#1d5a3a", "origin-head-text": "#e2ffee", "origin-head-mark": "#5fd38d",
        "origin-retrieval": "#204f86", "origin-retrieval-text": "#e3f0ff", "origin-retrieval-mark": "#7fb8ff",
        "origin-correction": "#ff9d7a", "origin-bonus": "#f0cf5a", "origin-target": "#d4d9e2",
        "accepted": "#6fe39d", "muted": "#98a2b3", "faint": "#5e6876",
        "line": "#3a4452",
    },
)  # fmt: skip
LIGHT = Theme(
    name="eagle-light",
    dark=False,
    primary="#1f6fc4",
    secondary="#6a4bbd",
    accent="#0b6fa8",
    success="#13783f",
    warning="#8f5a00",
    error="#b3261e",
    foreground="#1c2128",
    background="#fbfbfa",
    surface="#f3f4f4",
    panel="#e3e6ea",
    variables={
        "origin-head": "#c2ecd1", "origin-head-text": "#06391c", "origin-head-mark": "#13783f",
        "origin-retrieval": "#cfe2fb", "origin-retrieval-text": "#0a2f5c", "origin-retrieval-mark": "#1f5fae",
        "origin-correction": "#b3391a", "origin-bonus": "#836100", "origin-target": "#3a424d",
        "accepted": "#0f6a37", "muted": "#5b6470", "faint": "#9aa2ad",
        "line": "#c5cad1",
    },
)  # fmt: skip
