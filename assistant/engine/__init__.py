"""Speculative decoding: draft a tree, verify it in one forward, keep what the target would have written.

Per step: draft (`draft.py`) -> tree (`tree.py`) -> forward (`generate.py`) -> verify (`verify.py`) -> `kv_cache.py`.
A library of its own: it knows neither configuration nor sockets nor editors.
"""
