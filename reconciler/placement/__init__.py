"""Which chunks go where: only where the scheduler would accept them, and as cheaply as possible. Entry: `place.py`."""
