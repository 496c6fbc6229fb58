"""Disruption budgets: what they allow, now and hour by hour, as text, JSON, SVG and HTML."""
