"""What planned nodes are asked for in the end."""
