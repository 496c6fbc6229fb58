"""How chunks are placed: batch after batch onto nodes that exist, planned nodes and new ones, with a journal to undo attempts."""
