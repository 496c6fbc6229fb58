"""From what is wanted and what is there to the ordered changes between them. Pure."""
