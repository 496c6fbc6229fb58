"""What merging does to manifests, told from what each side would do to the same cluster."""

from typing import Any

import pytest

from reconciler.model.changes import Action, FieldChange, ObjectChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.refs import SourcePosition
from reconciler.report.difference.objects import written_differences
from reconciler.report.escaping import plain
from reconciler.report.plan.rows import object_row, row_lines
from tests.builders import buffer_ref

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


def test_what_both_sides_declare_alike_is_no_difference() -> None:
    assert told(document(replicas=2), document(replicas=2)) == []


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
    assert list(row_lines(object_row(told(document(), None)[0]), plain)) == [
        "  = CapacityBuffer/shop/web: keep; no longer declared; it stays in the cluster"
    ]
