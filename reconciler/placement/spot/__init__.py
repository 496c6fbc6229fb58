"""Keeps the share of a demand that may stand on spot nodes of one offering. Entries: allowances.py and offers.py."""
