"""One declared thing and what became of it. Called by `headroom explain`."""
