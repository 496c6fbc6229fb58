"""Decodes API objects into the model: what is read of each kind, and what it becomes."""
