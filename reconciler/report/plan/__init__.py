"""A plan as text, JSON and rows of a page, with the phrases for what it contains."""
