"""The configuration: declared once, read from files, environment and command line, checked whole, merged.

    declaration  every key: type, bounds, default, meaning        languages  language ids by file name
    keys         the declaration key by key; the nearest key      overrides  per language and per glob
    places       where a key stands in its file                   project    what a project's file may set
    files        a file, read and checked                         versions   files of an older declaration
    layers       one source each; origins                         merge      all sources, one configuration
    example      the documented example, written from the declaration
    watcher      a configuration that follows its files

Imports neither torch nor models nor the daemon, so that editors start quickly.
"""

from assistant.config.declaration import Settings
from assistant.config.layers import Layer, Origin, Rank, mapping_layer
from assistant.config.merge import Merged, load

__all__ = ["Layer", "Merged", "Origin", "Rank", "Settings", "load", "mapping_layer"]
