"""Which topology domains chunks go to."""
