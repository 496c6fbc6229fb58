"""Captured clusters: written by `headroom snapshot`, read back to plan against."""
