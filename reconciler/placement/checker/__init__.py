"""Judges placements by code of its own: it shares nothing with the engine but the model. Entry: violations.py."""
