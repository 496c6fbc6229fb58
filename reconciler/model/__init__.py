"""The glossary as types: no I/O, no clock, no third-party imports. Every other package may import this one."""
