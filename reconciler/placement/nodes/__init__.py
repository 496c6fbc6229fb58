"""Nodes that exist, nodes on their way and planned nodes, as arrays."""
