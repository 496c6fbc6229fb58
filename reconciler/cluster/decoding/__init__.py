"""API objects on their way into the model: what is read of each kind, and what it becomes."""
