"""The taint of held nodes among those of others."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cluster.discovery import Served
from reconciler.cluster.writes import Writer, with_taints
from reconciler.model.changes import Annotate, Outcome
from reconciler.model.nodes import HELD_TAINT
from reconciler.model.refs import ObjectRef
from tests.unit.cluster.scripted_server import Reply, Script, serving, status
from tests.unit.cluster.test_watch import KnownDiscovery

OURS = {"key": "headroom.dev/held", "effect": "PreferNoSchedule"}
THEIRS = {"key": "dedicated", "value": "shop", "effect": "NoSchedule", "timeAdded": "2026-11-22T09:00:00Z"}
OTHER_EFFECT = {"key": "headroom.dev/held", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("before", "is_wanted", "after"),
    [
        ([], True, [OURS]),
        ([THEIRS], True, [THEIRS, OURS]),
        ([OURS, THEIRS], True, [OURS, THEIRS]),
        ([THEIRS, OURS], False, [THEIRS]),
        ([OTHER_EFFECT], False, [OTHER_EFFECT]),
        ([OTHER_EFFECT], True, [OTHER_EFFECT, OURS]),
        ([], False, []),
    ],
)
def test_what_others_have_put_there_stays(
    before: list[dict[str, Any]],
    is_wanted: bool,  # noqa: FBT001 - the case
    after: list[dict[str, Any]],
) -> None:
    assert with_taints({"spec": {"taints": before}}, [(HELD_TAINT, is_wanted)]) == after


def test_a_node_without_any() -> None:
    assert with_taints({}, [(HELD_TAINT, True)]) == [OURS]


def test_a_node_that_somebody_else_changes_meanwhile_is_read_again() -> None:
    node = {"kind": "Node", "metadata": {"name": "n", "resourceVersion": "7"}, "spec": {"taints": [THEIRS]}}
    script = Script([Reply(body=node), status(409, "changed"), Reply(body=node), Reply(body=node)])
    with serving(script) as connection:
        discovery = KnownDiscovery(connection, {("", "Node"): Served("nodes", ("v1",), namespaced=False)})
        writer = Writer(connection, discovery, lambda _ref, _version: None)
        write = Annotate(ObjectRef("", "Node", "", "n"), (("a", "b"),), taints=((HELD_TAINT, True),))
        assert writer.write(write, dry_run=False).outcome is Outcome.APPLIED
    assert len(script.asked) == 4
