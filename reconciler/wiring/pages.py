"""The packaged pages, and reports for forges, which bound what a comment may hold."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.packaged import packaged_texts
from reconciler.render.environment import MOST_PAGE, Templates
from reconciler.report.escaping import PAGE_FILTERS, page_value
from reconciler.report.plan.page import trimmed

MOST_BYTES = 60_000
"""Of a Markdown report: GitHub takes 65,536 characters in a comment, and bytes are never fewer."""
_ROWS = (60, 30, 15, 8, 4, 2, 1, 0)
_MARKDOWN = "report.md.j2"


def rendered_page(name: str, page: Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, … A Markdown report keeps below `MOST_BYTES`. Its lists are
    shortened until it does, and say by how much. The summary stays whole, and so does every other page."""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    if name != _MARKDOWN:
        return templates.render(name, page, most_output=MOST_PAGE)
    text = ""
    for most in _ROWS:
        text = templates.render(name, trimmed(page, most), most_output=MOST_PAGE)
        if len(text.encode()) < MOST_BYTES:
            break
    return text
