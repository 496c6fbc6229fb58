"""Pure time arithmetic: what is due, and what is open when. The instant always comes from the caller."""
