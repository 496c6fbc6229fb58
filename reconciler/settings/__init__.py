"""Settings: what they are, what values they take, and where they are given."""
