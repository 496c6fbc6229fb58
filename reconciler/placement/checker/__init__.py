"""Judges placements with code of its own: it shares only the problem and the model with the engine. Entry: `violations`."""
