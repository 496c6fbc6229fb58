"""The words of the product as types: no I/O, no clock, no third-party imports. Everything else imports this."""
