"""Tiny models and other helpers that tests share."""
