"""Where eagle-assist keeps its files.

`EAGLE_ASSIST_HOME` puts everything under one folder; otherwise the platform's own folders are used. The functions only
name folders: whoever writes creates them (`assistant.files`).
"""

import os
from pathlib import Path

import platformdirs

APP = "eagle-assist"
HOME_VARIABLE = "EAGLE_ASSIST_HOME"


def _home() -> Path | None:
    home = os.environ.get(HOME_VARIABLE)
    return Path(home).expanduser().absolute() if home else None


def config_dir() -> Path:
    """The folder of the user's configuration."""
    home = _home()
    return home / "config" if home else Path(platformdirs.user_config_dir(APP, appauthor=False))


def cache_dir() -> Path:
    """The folder of files that can be made again: joined models, converted weights, measured costs."""
    home = _home()
    return home / "cache" if home else Path(platformdirs.user_cache_dir(APP, appauthor=False))


def state_dir() -> Path:
    """The folder of logs and whatever the program has learned."""
    home = _home()
    return home / "state" if home else Path(platformdirs.user_state_dir(APP, appauthor=False))


def runtime_dir() -> Path:
    """The folder of the daemon's socket and locks; it may vanish when the user logs out."""
    home = _home()
    return home / "run" if home else Path(platformdirs.user_runtime_dir(APP, appauthor=False))


def log_dir() -> Path:
    """The folder of the daemon's logs."""
    return state_dir() / "logs"


def learned_dir() -> Path:
    """The folder of verified steps that are kept for training, where the user chose so."""
    return state_dir() / "learned"


def models_dir() -> Path:
    """The folder of model files joined from their packages."""
    return cache_dir() / "models"


def converted_dir() -> Path:
    """The folder of weights and tokenizers in the form that loads quickly."""
    return cache_dir() / "converted"
