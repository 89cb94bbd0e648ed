"""The language server. Empty so far: editors will speak to it over stdio."""
