"""The stages of a pass; `cycle` has them in their order."""
