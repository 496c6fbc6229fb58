"""What the daemon last did, as JSON and text."""
