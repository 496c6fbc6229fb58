"""All capacity over the coming time: demands, schedules and budgets in lanes."""
