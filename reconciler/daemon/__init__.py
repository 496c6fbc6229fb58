"""The daemon: decides when passes are made, one at a time, until it is stopped or settled."""
