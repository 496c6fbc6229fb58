"""Other ways to place few chunks, and the best of them."""
