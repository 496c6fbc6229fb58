"""The packaged HTML pages."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.packaged import packaged_texts
from reconciler.render.environment import MOST_PAGE, Templates


def rendered_page(name: str, page: Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, …"""
    templates = Templates(packaged_texts("templates", suffix=".j2"))
    return templates.render(name, page, most_output=MOST_PAGE)
