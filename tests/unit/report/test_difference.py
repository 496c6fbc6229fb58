"""A comment on a pull request has a limit. The summary is never cut by it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.changes import (
    Action,
    Cost,
    DemandOutcome,
    FieldChange,
    NodeClaimChanges,
    NodeClaimCreation,
    ObjectChange,
    Plan,
)
from reconciler.model.declared import DeclaredManifest
from reconciler.model.findings import Finding, Severity
from reconciler.model.placement import Cause, Holding, UnplacedReason
from reconciler.model.refs import SourcePosition
from reconciler.report.difference.difference import Details, Difference, difference
from reconciler.report.difference.headline import headline
from reconciler.report.difference.objects import written_differences
from reconciler.report.difference.page import assumptions, difference_page
from reconciler.report.escaping import markdown_text, plain
from reconciler.report.plan.rows import object_row, row_lines
from reconciler.wiring.posting import MOST_BYTES, rendered_page
from tests.builders import buffer_ref, demand
from tests.plans import NOW, planned

WIDE = "\u20ac" * 700
"""Three bytes each, so that characters and bytes differ."""


def large(count: int) -> Difference:
    """Another change, reason and finding for each, so that nothing can be grouped."""
    outcomes, created, objects, findings = [], [], [], []
    for index in range(count):
        name, ref = f"buffer-{index}", buffer_ref(f"buffer-{index}")
        full = UnplacedReason(Cause.AT_LIMIT, index, f"NodePool {name} is at its limit {WIDE}")
        outcomes.append(DemandOutcome(demand(name, count=index + 2), 0, index + 1, 1, (full,)))
        created.append(NodeClaimCreation(name, planned(Holding(ref, 0, 1), price=0.1)))
        note = FieldChange("spec.note", WIDE, f"{WIDE}{name}")
        objects.append(ObjectChange(ref, Action.UPDATE, (note,), {}))
        place = SourcePosition(f"{name}.yaml", 1)
        findings.append(Finding("unknown-field", Severity.ERROR, f"{name} {WIDE}", place, ref))
    claims = NodeClaimChanges(create=tuple(created))
    plan = Plan(None, NOW, tuple(outcomes), claims, tuple(objects), findings=tuple(findings))
    return difference(Plan(None, NOW), plan)


@pytest.mark.parametrize("count", [1, 70, 500])
def test_a_report_stays_below_the_limit_with_its_summary_whole(count: int) -> None:
    change = large(count)
    text = rendered_page("report.md.j2", difference_page(change, cluster="production"))
    assert len(text.encode()) < MOST_BYTES
    assert markdown_text(headline(change)) in text
    assert text.count("<details>") == text.count("</details>")
    for shown, left in re.findall(r"((?:^[|-].*\n)+)\n*… and ([\d,]+) more", text, re.MULTILINE):
        assert shown.count("buffer-") >= count - int(left.replace(",", "")), "what is left out is counted"
    assert ("… and " in text) == (count > 1)


def test_a_report_of_more_notes_than_fit_into_a_comment_is_cut() -> None:
    notes = tuple(f"{index} {WIDE}" for index in range(3000))
    change = difference(Plan(None, NOW), replace(Plan(None, NOW), notes=notes))
    text = rendered_page("report.md.j2", difference_page(change, cluster="production"))
    assert len(text.encode()) < MOST_BYTES + 100
    assert markdown_text(headline(change)) in text


def test_equal_rows_are_one_row_that_counts_them() -> None:
    names = [f"buffer-{index}" for index in range(70)]
    outcomes = tuple(DemandOutcome(demand(name, count=2), 0, 2, 0) for name in names)
    change = difference(Plan(None, NOW), replace(Plan(None, NOW), demands=outcomes))
    text = rendered_page("report.md.j2", difference_page(change, cluster="production"))
    assert text.count("absent → 2") == 1
    assert "and 67 more" in text


def test_equal_input_gives_equal_bytes() -> None:
    once, again = (rendered_page("report.md.j2", difference_page(large(70), cluster="c")) for _ in range(2))
    assert once == again


# New findings of a difference, each counted once.

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)

REFUSED = Finding("immutable-field", Severity.ERROR, "cannot be changed", SourcePosition("a.yaml", 3, 1), buffer_ref())
NO_YAML = Finding("yaml-syntax", Severity.ERROR, "cannot be read", SourcePosition("a.yaml", 1, 1))


def test_what_the_comparison_and_the_plan_both_find_is_one_finding() -> None:
    head = replace(Plan(None, NOON), findings=(replace(REFUSED, position=SourcePosition("a.yaml", 9, 1)),))
    assert difference(Plan(None, NOON), head, Details(lowered=(REFUSED,))).new_findings == (REFUSED,)


def test_two_files_that_cannot_be_read_are_two() -> None:
    other = replace(NO_YAML, position=SourcePosition("b.yaml", 1, 1))
    head = replace(Plan(None, NOON), findings=(NO_YAML, other, other))
    assert difference(Plan(None, NOON), head).new_findings == (NO_YAML, other)


def test_an_error_of_the_base_hides_none_in_another_file_nor_a_second_one_in_its_own() -> None:
    """It passed --no-new-errors, since an error of the same words was anywhere in the base."""
    moved, second = (replace(NO_YAML, position=SourcePosition("a.yaml", line, 1)) for line in (2, 9))
    other = replace(NO_YAML, position=SourcePosition("b.yaml", 1, 1))
    base, head = (replace(Plan(None, NOON), findings=found) for found in ((NO_YAML,), (moved, second, other)))
    change = difference(base, head)
    assert (change.new_findings, change.fixed_findings, change.left_errors) == ((second, other), (), (moved,))


@pytest.mark.parametrize(
    "words", ["declared twice, here and at b.yaml:{}:1", "'a' is given twice, on line 1 and on line {}"]
)
def test_an_error_is_the_same_when_only_the_lines_that_it_names_move(words: str) -> None:
    base, head = (
        replace(Plan(None, NOON), findings=(replace(REFUSED, message=words.format(line)),)) for line in (3, 4)
    )
    change = difference(base, head)
    assert (change.new_findings, change.fixed_findings, len(change.left_errors)) == ((), (), 1)


def test_a_finding_in_other_words_is_new_and_not_fixed() -> None:
    """6 of 8 pods may wait for 1 of 8: it stood among the findings that merging fixes."""
    one = Finding("pods-may-wait", Severity.WARNING, "1 of 8 may have to wait", ref=buffer_ref("web"))
    six, gone = replace(one, message="6 of 8 may have to wait"), replace(one, ref=buffer_ref("old"))
    base, head = (replace(Plan(None, NOW), findings=found) for found in ((one, gone), (six,)))
    change = difference(base, head)
    assert (change.new_findings, change.fixed_findings) == ((six,), (gone,))


# What merging does to manifests, told from what each side would do to the same cluster.

WEB = buffer_ref("web")


CREATED = ObjectChange(WEB, Action.CREATE, (), {"spec": {"replicas": 2}})
GONE = ObjectChange(WEB, Action.DELETE, reason="no longer declared")


def document(**spec: Any) -> DeclaredManifest:
    marks = {"annotations": {"headroom.dev/applied-hash": str(sorted(spec.items()))}}
    return DeclaredManifest(WEB, {"metadata": marks, "spec": spec}, SourcePosition("web.yaml", 1))


def told(
    before: DeclaredManifest | None,
    after: DeclaredManifest | None,
    base: tuple[ObjectChange, ...] = (),
    head: tuple[ObjectChange, ...] = (),
    *,
    is_there: bool = True,
) -> list[ObjectChange]:
    left, right = ([side] if side else [] for side in (before, after))
    return list(written_differences(left, right, base, head, (WEB,) if is_there else ()))


def test_an_edited_document_is_told_by_field() -> None:
    (change,) = told(document(percentage=20, limits=[1, 2]), document(percentage=50, limits=[1, 3]))
    assert change.action is Action.UPDATE
    assert change.changes == (FieldChange("spec.limits[1]", 2, 3), FieldChange("spec.percentage", 20, 50))


def test_a_new_document_is_told_with_where_it_is_declared() -> None:
    (change,) = told(None, document(replicas=2), head=(CREATED,))
    assert (change.action, change.reason) == (Action.CREATE, "declared")


@pytest.mark.parametrize(
    ("base", "head", "is_there", "action", "reason"),
    [
        ((), (GONE,), True, Action.DELETE, "no longer declared"),
        ((CREATED,), (), True, Action.DELETE, "no longer declared; not in this cluster yet"),
        ((), (), True, Action.KEEP, "no longer declared; it stays in the cluster"),
        ((), (), False, Action.DELETE, "no longer declared; not in this cluster"),
    ],
)
def test_a_document_that_is_removed_says_what_becomes_of_its_object(
    *, base: tuple[ObjectChange, ...], head: tuple[ObjectChange, ...], is_there: bool, action: Action, reason: str
) -> None:
    (change,) = told(document(), None, base, head, is_there=is_there)
    assert (change.action, change.reason) == (action, reason)


def test_an_object_that_stays_is_told_with_its_reason() -> None:
    """The first line said that it is removed."""
    (stays,) = told(document(), None)
    assert list(row_lines(object_row(stays), plain)) == [
        "  = CapacityBuffer/shop/web: keep; no longer declared; it stays in the cluster"
    ]
    nothing = Plan(None, NOW)
    change = replace(difference(nothing, nothing), objects=(stays, GONE))
    assert "1 object removed and 1 no longer declared" in headline(change)


def test_what_only_the_base_assumes_is_told_apart() -> None:
    """`3 nodes released and empty` and `1 node released and empty` stood below one another."""
    base, head = (replace(Plan(None, NOW), cost=Cost(assumptions=("spot", own))) for own in ("1 node", "3 nodes"))
    assert assumptions(difference(base, head)) == ["spot", "3 nodes", "without the change: 1 node"]
