"""What merging a branch would change: two plans on one cluster, and their differences."""
