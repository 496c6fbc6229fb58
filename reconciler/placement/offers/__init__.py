"""What can be bought: the catalogue, what each NodePool may buy of it, and which sizes a new node may have."""
