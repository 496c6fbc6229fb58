"""All clusters of one daemon: those that fail come first, and sums are of all."""

from __future__ import annotations

from typing import Any

from reconciler.report.status.clusters import clusters_page, clusters_text


def row(name: str, *, ready: int = 2, why: tuple[str, ...] = (), planned: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "finished": "2026-11-25T08:00:00Z",
        "revision": "main@sha1:0123456789abcdef0123456789abcdef01234567",
        "planned": "2026-11-25T08:00:00Z" if planned else None,
        "why": list(why),
        "headline": "All 1 buffers are ready",
        "buffers": 1,
        "wanted": 2,
        "ready": ready,
        "coming": 0,
        "missing": 2 - ready,
        "nodes": 3,
        "held": 1,
        "perHour": 0.5,
    }


DOCUMENT = {
    "schemaVersion": "headroom.dev/clusters/v1",
    "version": "0.1.0",
    "clusters": [row("a"), row("short", ready=1), row("fails", why=("the last pass failed\x1b[2J",))],
}


def test_the_page_has_what_fails_first_then_what_is_short_and_the_sums() -> None:
    page = clusters_page(DOCUMENT)
    assert page["headline"] == "1 of 3 clusters needs attention"
    assert [each["name"] for each in page["rows"]] == ["fails", "short", "a"]
    assert [(tile["name"], tile["value"]) for tile in page["tiles"]] == [
        ("Clusters", "2 of 3"),
        ("Chunks ready", "5 of 6"),
        ("Nodes", "9"),
        ("Cost an hour", "$1.50"),
    ]


def test_the_text_has_a_line_for_each_and_nothing_that_moves_a_cursor() -> None:
    lines = clusters_text(DOCUMENT).splitlines()
    assert lines[0] == "1 of 3 clusters needs attention"
    assert lines[1].startswith("fails: 2 of 2 chunks ready, 3 nodes, $0.50/h; the last pass failed")
    assert "\x1b" not in lines[1]


def test_of_a_cluster_without_a_plan_no_counts_are_told() -> None:
    unread = row("away", why=("no pass has ended yet",), planned=False)
    text = clusters_text({**DOCUMENT, "clusters": [unread]})
    assert text.splitlines()[1] == "away: no pass has ended yet"
