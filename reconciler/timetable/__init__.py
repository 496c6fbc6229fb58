"""Pure time arithmetic: what is due or open when. The instant always comes from the caller."""
