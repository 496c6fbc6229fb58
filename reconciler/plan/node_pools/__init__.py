"""What becomes of NodePools: how many nodes their budgets let go, and the size of static ones."""
