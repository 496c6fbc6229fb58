"""Reports for people and programs: plans, differences, findings, schedules, budgets and status in every output format. Pure."""
