"""Which chunks go where: exact about what the scheduler would accept, free about what is cheapest. Entry: place.py."""
