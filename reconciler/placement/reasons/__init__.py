"""Why chunks could not be placed, in words."""
