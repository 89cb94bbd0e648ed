"""Tests of one module each, on tiny random models."""
