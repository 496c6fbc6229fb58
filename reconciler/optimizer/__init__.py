"""Cheaper new nodes for the chunks of a placement, by column generation. The entry is `place_optimally`."""
