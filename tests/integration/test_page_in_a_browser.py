"""The daemon's page in a real browser: on a phone and on a desk, light and dark, by keyboard, without scripts, and while it changes. Needs Chromium."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.changes import Plan
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import SourcePosition
from reconciler.ports import PassResult
from reconciler.report.schedules.page import BrokenDocument, schedule_page
from reconciler.wiring.posting import rendered_page
from tests.browser import Browser
from tests.controlplane.waiting import eventually
from tests.manifests import schedule
from tests.page_worlds import COMMIT, World, empty, healthy, large_pass, sick
from tests.timelines import NOW, proposal, schedule_timeline

LOOKS = [(width, dark) for width in (390, 1280) for dark in (False, True)]
FIRST = ("empty", "healthy", "sick")
PATHS = [
    *((name, "/") for name in FIRST),
    ("healthy", "/CapacityBuffer/shop/web"),
    ("sick", "/CapacityBuffer/shop/flash-sale"),
    ("healthy", "/NodePool/general"),
    ("healthy", "/capacity"),
]
# Text whose contrast with what is behind it is less than WCAG 2.2 (1.4.3) asks for: 4.5, or 3 where it is large.
PALE = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const bright = ([r, g, b]) => {
    const part = [r, g, b].map((one) => one / 255).map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length && (colour.length < 4 || colour[3] === 1)) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, noscript, script, style")) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const pair = [bright(parse(style.color)), bright(behind(element))].sort((one, other) => other - one);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) found.push(element.textContent.trim().slice(0, 40) + " " + contrast.toFixed(2));
  }
  return found;
})()
"""
# What the focus is on, and whether one can see that it is.
FOCUS = """
(() => {
  const at = document.activeElement, style = getComputedStyle(at);
  return [at.textContent.trim(), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
})()
"""
LOOK_NOW = 'document.dispatchEvent(new Event("visibilitychange"))'


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    return {"empty": empty(), "healthy": healthy(hours=1), "sick": sick()}


@pytest.fixture(scope="module")
def addresses(worlds: dict[str, World]) -> Iterator[dict[str, str]]:
    with worlds["empty"].served() as first, worlds["healthy"].served() as second, worlds["sick"].served() as third:
        yield dict(zip(FIRST, (first, second, third), strict=True))


@pytest.mark.parametrize(("world", "path"), PATHS)
def test_everything_is_in_sight_and_can_be_read(
    world: str, path: str, addresses: dict[str, str], browser: Browser
) -> None:
    with browser.opened(f"{addresses[world]}{path}", height=900) as tab:
        for width, dark in LOOKS:
            tab.look(width=width, height=900, dark=dark)
            assert tab.value("document.documentElement.scrollWidth") <= width
            assert tab.value(PALE) == [], (width, dark)


def test_a_very_long_name_pushes_no_column_out_of_sight(addresses: dict[str, str], browser: Browser) -> None:
    with browser.opened(f"{addresses['healthy']}/", width=1280, height=900) as tab:
        tab.value('document.querySelector("td.name > *").textContent = "shop/" + "x".repeat(253)')
        assert tab.value('[...document.querySelectorAll(".scroll")].every(at => at.scrollWidth <= at.clientWidth)')


def test_the_first_line_says_what_is_wrong_and_the_title_too(addresses: dict[str, str], browser: Browser) -> None:
    with browser.opened(f"{addresses['sick']}/", width=390, height=844) as tab:
        first = "2 of 5 buffers are not full: shop/search is not ready and shop/flash-sale lacks 3 of 14 chunks"
        assert tab.value('document.querySelector("h1").textContent') == first
        assert tab.value("document.title") == f"! {first} · production"
        bottom = tab.value('document.querySelector(".alarm:not([hidden])").getBoundingClientRect().bottom')
        assert bottom < 844, "on a phone it is seen without scrolling that the repository is stalled"


def test_all_that_can_be_followed_is_reached_by_keyboard(addresses: dict[str, str], browser: Browser) -> None:
    with browser.opened(f"{addresses['healthy']}/", width=1280, height=900) as tab:
        count = tab.value('[...document.querySelectorAll("a, summary")].filter((one) => one.checkVisibility()).length')
        reached = []
        for _ in range(count):
            tab.press("Tab")
            words, is_seen = tab.value(FOCUS)
            assert is_seen, words
            reached.append(words)
        assert reached[:4] == ["production", "The week ahead", "JSON", "Metrics"]
        assert {"shop/web", "shop/checkout", "ci/ci-runners"} <= set(reached)


def test_times_are_in_the_viewers_zone_and_in_utc(addresses: dict[str, str], browser: Browser) -> None:
    with browser.opened(f"{addresses['healthy']}/", zone="America/New_York") as tab:
        told = tab.value('document.querySelector("#schedules ~ .scroll time").title')
        assert "02:00 EST (07:00 UTC)" in told


def test_without_scripts_it_says_the_same_in_utc_and_loads_itself_again(
    addresses: dict[str, str], browser: Browser
) -> None:
    with browser.opened(f"{addresses['healthy']}/", script=False) as tab:
        assert tab.value('document.querySelector("h1").textContent') == "All 3 buffers are ready"
        assert tab.value('document.querySelector("#schedules ~ .scroll time").textContent').endswith(" 07:00 UTC")
        assert tab.value('document.querySelector("meta[http-equiv=refresh]").content') == "15"


def test_it_shows_what_is_new_and_keeps_what_is_open_and_where_the_focus_is(browser: Browser) -> None:
    made = empty()
    plan, seen = large_pass(made.clock.now(), buffers=20, nodes=40, pods=40)
    made.last.observe("commit", PassResult(plan=plan), seen)
    made.clock.advance(1)
    with made.served() as address, browser.opened(f"{address}/", width=1280, height=900) as tab:
        tab.value('document.querySelector("#calm").open = true')
        tab.value("""document.querySelector('a[href="CapacityBuffer/shop/buffer-007"]').focus()""")
        lacks = "1 of 20 buffers is not full: shop/buffer-007 lacks 4 of 20 chunks"
        assert tab.value('document.querySelector("h1").textContent') == lacks
        made.last.observe(
            "change", PassResult(plan=large_pass(made.clock.now(), buffers=21, nodes=40, pods=40)[0]), seen
        )
        tab.value(LOOK_NOW)
        now = lacks.replace("20 buffers", "21 buffers")
        eventually(lambda: tab.value('document.querySelector("h1").textContent') == now, within=60, what="it is new")
        assert tab.value('document.querySelector("#calm").open')
        assert tab.value("document.activeElement.textContent") == "shop/buffer-007"


def test_it_says_when_the_daemon_does_not_answer_and_when_no_pass_has_ended_for_long(browser: Browser) -> None:
    made = empty()
    with made.served() as address:
        opened = browser.opened(f"{address}/")
        tab = opened.__enter__()
        assert "The last pass ended" in tab.value('document.querySelector("#stale").textContent'), "its clock is fixed"
    tab.value(LOOK_NOW)
    told = "The daemon does not answer."
    eventually(lambda: tab.value('document.querySelector("#stale").textContent').startswith(told), within=60, what=told)
    opened.__exit__(None, None, None)


def test_a_credential_in_a_message_is_not_shown(browser: Browser) -> None:
    from reconciler.model.errors import Transient

    made = empty()
    failure = Transient("https://bot:s3cret@git.example/r.git does not answer")
    made.last.observe("tick", PassResult(plan=Plan(COMMIT, made.clock.now()), failure=failure))
    with made.served() as address, browser.opened(f"{address}/") as tab:
        shown = tab.value("document.documentElement.outerHTML")
    assert "git.example/r.git does not answer" in shown
    assert "s3cret" not in shown


# The schedule page in a real browser: what a person sees after typing. Needs Chromium.

# The page waits for a pause in the typing where it takes long to compute. By a clock that stands still it never does, on a slow machine too.
CLOCK_STANDS_STILL = "performance.now = () => 0;"


def seen_after(browser: Browser, tmp_path: Path, script: str, page: dict[str, Any] | None = None) -> str:
    """The page as it stands after a script has acted for a person, without its own code and editor."""
    text = rendered_page("schedule.html.j2", page or schedule_page([schedule_timeline(proposal())], now=NOW))
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


def test_a_window_of_one_minute_is_in_sight(browser: Browser, tmp_path: Path) -> None:
    """It was less than a pixel wide, and the line between two values covered it."""
    document = schedule("once", 5, "hours: 12", "hours: 12, minutes: 1")
    page = schedule_page([], now=NOW, broken=[BrokenDocument("n", "", (1, 1), document)])
    look = """document.title = ["show-week", "show-month"].map((view) => {
        document.getElementById(view).click();
        const brief = document.querySelector('.piece[title^="5 "]');
        brief.scrollIntoView();
        const box = brief.getBoundingClientRect();
        return box.width >= 3 && document.elementFromPoint(box.left + 1, box.top + 3) === brief;
    });"""
    assert "<title>true,true</title>" in seen_after(browser, tmp_path, look, page)


def test_a_schedule_that_rests_for_years_shows_its_next_change(browser: Browser, tmp_path: Path) -> None:
    document = schedule("leap", 3, "days: 29, months: Feb", "days: 1, months: Mar", default=1)
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
    document = schedule("night", 3, "hours: 2, minutes: 15", "hours: 2, minutes: 45", default=1, zone="Europe/Berlin")
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
