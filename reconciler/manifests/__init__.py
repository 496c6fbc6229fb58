"""From bytes to declared objects: YAML with positions, validation with findings, one module for each kind."""
