"""Hides a comment on forges that cannot: its text is collapsed under a line that says so."""

from __future__ import annotations

_OPENING = "<details><summary>An earlier report, outdated</summary>"


def folded(body: str) -> str:
    """The text, collapsed; a collapsed one stays as it is."""
    return body if _OPENING in body else f"{_OPENING}\n\n{body}\n\n</details>\n"
