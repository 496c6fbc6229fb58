"""Settings: which there are, their values, and where they come from."""
