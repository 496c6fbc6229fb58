"""Which nodes are kept for their chunks, which chunks leave their nodes first, and which nodes are handed back."""
