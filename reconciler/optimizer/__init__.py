"""Looks for cheaper new nodes than the fast placement found. Entry: optimal.py."""
