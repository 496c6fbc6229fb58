"""New NodeClaims: their names, caps on how many one pass makes, and offerings that gave no node."""
