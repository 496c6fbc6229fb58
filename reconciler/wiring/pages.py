"""The packaged HTML pages."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.packaged import packaged_texts
from reconciler.render.environment import MOST_PAGE, Templates
from reconciler.report.escaping import PAGE_FILTERS, page_value


def rendered_page(name: str, page: Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, …"""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    return templates.render(name, page, most_output=MOST_PAGE)
