"""Why chunks found no place, in words."""
