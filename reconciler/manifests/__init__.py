"""From bytes to declared things: YAML with positions, validation with findings, one module a kind."""
