"""Capacity schedules as text, JSON, SVG, HTML and as the manifest itself."""
