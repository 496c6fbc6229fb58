"""What merging does to manifests, told from what each side would do to the same cluster."""

from typing import Any

from reconciler.model.changes import Action, FieldChange, ObjectChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.report.difference.objects import object_differences, written_differences
from reconciler.report.plan.text import object_lines
from reconciler.report.terminal import plain
from tests.builders import buffer_ref

WEB = buffer_ref("web")


def created(**spec: Any) -> ObjectChange:
    marks = {"annotations": {"headroom.dev/applied-hash": str(sorted(spec.items()))}}
    return ObjectChange(WEB, Action.CREATE, (), {"metadata": marks, "spec": spec})


def test_what_both_sides_create_alike_is_no_difference() -> None:
    assert object_differences([created(replicas=2)], [created(replicas=2)]) == ()


def test_what_both_sides_create_differently_is_told_by_field() -> None:
    (change,) = object_differences([created(percentage=20, limits=[1, 2])], [created(percentage=50, limits=[1, 3])])
    assert change.action is Action.UPDATE
    assert change.changes == (FieldChange("spec.limits[1]", 2, 3), FieldChange("spec.percentage", 20, 50))


def test_what_only_the_base_would_create_is_deleted_by_merging() -> None:
    (change,) = object_differences([created(replicas=2)], [])
    assert (change.action, change.reason) == (Action.DELETE, "no longer declared")


def test_a_document_that_is_removed_says_what_becomes_of_its_object() -> None:
    document = DeclaredManifest(WEB, {}, SourcePosition("web.yaml", 1, 1))
    gone = ObjectChange(WEB, Action.DELETE, reason="no longer declared")

    def told(
        base: list[ObjectChange], head: list[ObjectChange], in_cluster: tuple[ObjectRef, ...] = (WEB,)
    ) -> tuple[Action, str]:
        (change,) = written_differences([document], [], base, head, in_cluster)
        return change.action, change.reason

    assert told([], [gone]) == (Action.DELETE, "no longer declared")
    assert told([created(replicas=2)], []) == (Action.DELETE, "no longer declared; not in this cluster yet")
    assert told([], []) == (Action.KEEP, "no longer declared; it stays in the cluster")
    assert told([], [], ()) == (Action.DELETE, "no longer declared; not in this cluster")
    (kept,) = written_differences([document], [], [], [], (WEB,))
    assert object_lines(kept, plain) == [
        "  = CapacityBuffer/shop/web: no longer declared; it stays in the cluster  web.yaml:1"
    ]


def test_what_only_the_head_does_is_told_as_it_is() -> None:
    update = ObjectChange(WEB, Action.UPDATE, (FieldChange("spec.replicas", 1, 2),), {})
    assert object_differences([], [update]) == (update,)


def test_a_change_that_only_the_base_would_make_is_taken_back() -> None:
    update = ObjectChange(WEB, Action.UPDATE, (FieldChange("spec.replicas", 1, 2),), {})
    (change,) = object_differences([update], [])
    assert change.changes == (FieldChange("spec.replicas", 2, 1),)
