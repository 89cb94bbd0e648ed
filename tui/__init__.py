"""The terminal interface. Empty so far: it will read the same stream as an editor, and show every step."""
