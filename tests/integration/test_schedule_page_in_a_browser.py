"""The schedule page in a real browser: what a person sees after typing. Needs Chromium."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.files import packaged_texts
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import SourcePosition
from reconciler.render.environment import Templates
from reconciler.report.escaping import PAGE_FILTERS, page_value
from reconciler.report.schedules.page import BrokenDocument, schedule_page
from tests.browser import Browser
from tests.timelines import NOW, proposal, schedule_timeline

# The page waits for a pause in the typing where it takes long to compute. By a clock that stands still it never does, on a slow machine too.
CLOCK_STANDS_STILL = "performance.now = () => 0;"


def seen_after(browser: Browser, tmp_path: Path, script: str, page: dict[str, Any] | None = None) -> str:
    """The page as it stands after a script has acted for a person, without its own code and editor."""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    rows = page or schedule_page([schedule_timeline(proposal())], now=NOW)
    text = templates.render("schedule.html.j2", rows)
    path = tmp_path / "schedule.html"
    path.write_text(text.replace("</body>", f"<script>{CLOCK_STANDS_STILL}{script}</script></body>"))
    body = re.sub(r"<(script|style|noscript|textarea)\b.*?</\1>", "", browser.page(path), flags=re.DOTALL)
    return html.unescape(body)


def typing(before: str, after: str) -> str:
    return (
        "const field = document.getElementById('document');"
        f"field.value = field.value.replace({json.dumps(before)}, {json.dumps(after)});"
        "field.dispatchEvent(new Event('input'));"
    )


def test_it_shows_the_week_the_next_changes_and_the_collision(browser: Browser, tmp_path: Path) -> None:
    seen = seen_after(browser, tmp_path, "")
    assert "2 at Thu 5 Mar 08:30 (16:30 UTC); 3 from Thu 5 Mar 09:00 (17:00 UTC)." in seen
    assert 'aria-label="Fri 6 Mar: 2 until 09:00, 3 until 17:00, 1"' in seen
    assert "1. Fri 6 Mar 17:00 (Sat 7 Mar 01:00 UTC) to Mon 9 Mar 09:00 (16:00 UTC): behaviors[0] (1) wins" in seen
    assert "No errors; every behavior is in effect at some time." in seen


def test_a_range_is_answered_with_the_list_to_write(browser: Browser, tmp_path: Path) -> None:
    seen = seen_after(browser, tmp_path, typing("weekdays: Fri", "weekdays: Fri-Mon"))
    assert 'weekdays takes lists only, no ranges, steps or wildcards: "Fri-Mon"' in seen
    assert 'write "Fri,Sat,Sun,Mon"' in seen
    assert "What it meant when it could last be read" in seen


def test_the_month_has_every_day(browser: Browser, tmp_path: Path) -> None:
    seen = seen_after(browser, tmp_path, "document.getElementById('show-month').click();")
    assert "Mar 2026, America/Los_Angeles" in seen
    assert seen.count('class="cell') == 42
    assert 'aria-label="Tue 31 Mar: 2 until 09:00, 3 until 17:00, 2"' in seen


def test_a_schedule_that_rests_for_years_shows_its_next_change(browser: Browser, tmp_path: Path) -> None:
    document = (
        "apiVersion: autoscaling.karpenter.sh/v1alpha1\nkind: MetricsProducer\nmetadata: {name: leap, namespace: shop}\n"
        "spec:\n  schedule:\n    defaultReplicas: 1\n    behaviors:\n"
        "      - {replicas: 3, start: {days: 29, months: Feb}, end: {days: 1, months: Mar}}\n"
    )
    typed = f"const field = document.getElementById('document'); field.value = {json.dumps(document)};"
    seen = seen_after(browser, tmp_path, typed + "field.dispatchEvent(new Event('input'));")
    assert "3 from Tue 29 Feb 2028 00:00 UTC" in seen
    assert "<li>Tue 29 Feb 2028 00:00 UTC: 3 (behaviors[0])</li>" in seen
    assert "none" not in seen.partition('id="changes"')[2].partition("</ul>")[0]


BROKEN = """\
# Our own words
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec:
  schedule:
    timezone: Europe/Belin
    defaultReplicas: 0
"""


def test_a_broken_document_is_in_the_editor_with_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    finding = Finding("unknown-time-zone", Severity.ERROR, "no such zone", SourcePosition("a.yaml", 9, 5))
    broken = BrokenDocument("shop/hours", "a.yaml", (3, 11), BROKEN)
    page = schedule_page([], now=NOW, findings=[finding], broken=[broken])
    seen = seen_after(
        browser, tmp_path, "document.title = document.getElementById('document').value.slice(0, 15);", page
    )
    assert "<title># Our own words</title>" in seen
    assert "No errors" not in seen
    assert 'did you mean "Europe/Berlin"?' in seen
    assert "this one is an example" not in seen


def test_findings_of_the_file_go_when_its_document_is_changed(browser: Browser, tmp_path: Path) -> None:
    finding = Finding("overlapping-behaviors", Severity.WARNING, "they overlap", ref=proposal().ref)
    page = schedule_page([schedule_timeline(proposal())], now=NOW, findings=[finding])
    look = "hidden.push(document.getElementById('told').hidden);"
    script = "const hidden = [];" + look
    for before, after in (("replicas: 3", "replicas: 30"), ("replicas: 30", "replicas: 3")):
        script += f"{{{typing(before, after)}}}{look}"
    seen = seen_after(browser, tmp_path, script + "document.title = hidden.join();", page)
    assert "<title>false,true,false</title>" in seen


def test_an_hour_that_comes_twice_is_drawn_in_halves(browser: Browser, tmp_path: Path) -> None:
    document = (
        "apiVersion: autoscaling.karpenter.sh/v1alpha1\nkind: MetricsProducer\nmetadata: {name: night, namespace: shop}\n"
        "spec:\n  schedule:\n    timezone: Europe/Berlin\n    defaultReplicas: 1\n    behaviors:\n"
        "      - {replicas: 3, start: {hours: 2, minutes: 15}, end: {hours: 2, minutes: 45}}\n"
    )
    page = schedule_page(
        [], now=datetime(2026, 10, 24, 12, tzinfo=UTC), broken=[BrokenDocument("n", "", (1, 1), document)]
    )
    seen = seen_after(browser, tmp_path, "", page)
    pieces = re.findall(r'class="piece (first|again)" title="(\d) .*?left: ([\d.]+)%; width: ([\d.]+)%', seen)
    assert [(part, value, float(left), float(width)) for part, value, left, width in pieces] == [
        ("first", "1", 8.333, 1.042),
        ("first", "3", 9.375, 2.083),
        ("first", "1", 11.458, 1.042),
        ("again", "1", 8.333, 4.167),
    ]
