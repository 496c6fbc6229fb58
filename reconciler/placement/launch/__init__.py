"""What the NodeClaims of planned nodes list in the end."""
