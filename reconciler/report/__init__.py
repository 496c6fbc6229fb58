"""What people and programs read: plans, differences, findings, schedules, budgets and status in every output format. Pure."""
