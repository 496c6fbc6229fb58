"""Clusters behind one port: a real one, a snapshot, and one embedded in this process."""
