"""Which chunks stay where they were."""
