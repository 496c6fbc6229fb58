"""Clusters behind one port: a real one, a snapshot of one, and one that lives in this process."""
