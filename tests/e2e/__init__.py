"""Tests that start the program as a user does."""
