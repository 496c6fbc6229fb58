"""Explains one demand, schedule or NodePool of a plan. Called by `headroom explain`."""
