"""Findings as text, JSON, SARIF, GitHub annotations and rows of a page."""
