"""SVG: shapes and texts, the axis of time, lanes of values."""
