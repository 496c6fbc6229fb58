"""What can be bought: the catalogue, what each NodePool makes of it, and which sizes a new node may have."""
