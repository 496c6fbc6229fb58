"""Figures: `python -m tests.perf` prints them and fails beyond the recorded limits. Never part of the quick tests."""
