"""Capacity schedules as text, JSON, SVG, HTML, iCalendar and as the manifest itself."""
