"""From files to documents: YAML, positions, limits, the schemas, and what is wrong with a structure."""
