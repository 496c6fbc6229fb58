"""The page of disruption budgets in a real browser: all columns are in sight. Needs Chromium."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.files import packaged_texts
from reconciler.model.changes import BudgetOutcome
from reconciler.render.environment import Templates
from reconciler.report.budgets.document import budget_page
from reconciler.report.escaping import PAGE_FILTERS, page_value
from tests.browser import Browser

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MEASURE = """
const box = document.querySelector(".scroll");
document.body.append(box.scrollWidth > box.clientWidth ? "COLUMNS-HIDDEN" : "COLUMNS-IN-SIGHT");
"""


@pytest.mark.parametrize("name", ["team-" * 30 + "a", "x" * 180])
def test_a_long_name_wraps_so_that_the_why_is_in_sight(name: str, browser: Browser, tmp_path: Path) -> None:
    why = "budgets[1] binds: no node at all, for 8h from each '0 9 * * mon-fri' (Europe/Berlin)"
    outcome = BudgetOutcome(name, "Underutilized", 0, 0, 0, 0, 20, why)
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    page = templates.render("budgets.html.j2", budget_page([outcome], [], heading="Budgets", now=NOW, zone=UTC))
    path = tmp_path / "budgets.html"
    path.write_text(page.replace("</body>", f"<script>{MEASURE}</script></body>"))
    seen = browser.page(path, width=1400, height=900)
    assert "\nCOLUMNS-IN-SIGHT" in seen.replace("</script>", "\n")
