"""The command line: one module a command. Called by `__main__`."""
