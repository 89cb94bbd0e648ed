"""Language ids, as the Language Server Protocol names them, by file name."""

from pathlib import PurePath

_SUFFIXES = {
    "bash": "shellscript", "c": "c", "cc": "cpp", "cjs": "javascript", "clj": "clojure", "cpp": "cpp", "cs": "csharp",
    "css": "css", "cxx": "cpp", "dart": "dart", "ex": "elixir", "exs": "elixir", "go": "go", "h": "c", "hpp": "cpp",
    "hs": "haskell", "htm": "html", "html": "html", "java": "java", "jl": "julia", "js": "javascript", "json": "json",
    "jsx": "javascriptreact", "kt": "kotlin", "less": "less", "lua": "lua", "m": "objective-c", "markdown": "markdown",
    "md": "markdown", "mjs": "javascript", "php": "php", "pl": "perl", "ps1": "powershell", "py": "python",
    "pyi": "python", "r": "r", "rb": "ruby", "rs": "rust", "rst": "restructuredtext", "scala": "scala", "scss": "scss",
    "sh": "shellscript", "sql": "sql", "swift": "swift", "tex": "latex", "toml": "toml", "ts": "typescript",
    "tsx": "typescriptreact", "txt": "plaintext", "vue": "vue", "xml": "xml", "yaml": "yaml", "yml": "yaml",
    "zig": "zig", "zsh": "shellscript",
}  # fmt: skip
_NAMES = {"dockerfile": "dockerfile", "makefile": "makefile", "gnumakefile": "makefile", "cmakelists.txt": "cmake"}


def language_of(path: str) -> str | None:
    """The language id of a file by its name; None where the name does not tell."""
    name = PurePath(path).name.lower()
    return _NAMES.get(name) or _SUFFIXES.get(name.rpartition(".")[2] if "." in name else "")
