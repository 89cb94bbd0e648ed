"""Weights to modules: targets, draft heads, tokenizers and where they are kept. No decoding policy lives here."""
