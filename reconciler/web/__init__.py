"""The daemon's read-only HTTP pages: health, readiness, metrics, status."""
