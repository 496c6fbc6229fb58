"""What capacity will cost: the demand of every state of the schedules is placed, priced and added up over time."""
