"""The stages of a pass, a file each, in the order in which `cycle` has them."""
