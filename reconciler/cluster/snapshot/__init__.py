"""Snapshots of clusters: written by `headroom snapshot`, and read back to plan with."""
