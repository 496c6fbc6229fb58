"""What can be bought: the catalog, what each NodePool may buy of it, and which sizes a new node may have."""
