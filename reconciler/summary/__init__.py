"""What a pass tells the cluster: conditions, statuses and events are decided here, and only written elsewhere."""
