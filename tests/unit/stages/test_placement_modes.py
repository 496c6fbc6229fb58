"""The placement of a pass: checked at run time, optimal within its time, and never misled by a watch that is behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.changes import Write, WriteResult
from reconciler.model.errors import Stalled
from reconciler.model.findings import Severity
from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL, UNREGISTERED_TAINT, Node
from reconciler.model.placement import Placement
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster
from reconciler.render.templates import TemplateSource
from reconciler.report.explanation import explanation, explanation_text
from reconciler.settings.load import load_settings
from reconciler.settings.settings import Settings
from reconciler.stages import placement as stage
from reconciler.stages.placement import place_in_mode
from reconciler.stages.planning import Render
from reconciler.stages.state import PassState
from reconciler.wiring.session import Session, open_session
from tests.fakes.embedded import buffer, node_pool, workload
from tests.fakes.requests import ATOMIC, MADE, BatchShop, request

NODES, NODE_CLAIMS = "nodes", "node_claims"
_PARTS = {"Node": NODES, "NodeClaim": NODE_CLAIMS}
_UNREGISTERED = Taint(UNREGISTERED_TAINT, "", "NoExecute")


@dataclass(slots=True)
class DelayedCluster:
    """Some parts of its views stay as they were. What the client itself wrote is seen: a view waits for that.

    behind: how many objects of a part, the last by name, are seen as they were when the part was seen in full for the last time.
    young: nodes whose NodeClaim says nothing of them yet are seen as they were before Karpenter registered them.
    is_cut_off: the watches of both broke before they told of anything, and a gap says so.
    """

    cluster: Cluster
    behind: dict[str, int] = field(default_factory=dict)
    young: bool = False
    is_cut_off: bool = False
    _full: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def view(self) -> ClusterView:
        view = self.cluster.view()
        for part in (NODES, NODE_CLAIMS):
            if part not in self.behind or part not in self._full:
                self._full[part] = getattr(view, part)
        parts: dict[str, Any] = {
            part: _partly(getattr(view, part), old, self.behind.get(part, 0)) for part, old in self._full.items()
        }
        seen = replace(view, **parts)
        if self.young:
            told = {claim.provider_id for claim in seen.node_claims}
            seen = replace(
                seen, nodes=tuple(node if node.provider_id in told else _unregistered(node) for node in seen.nodes)
            )
        if self.is_cut_off:
            gaps = ("nodeclaims cannot be read: the connection was lost",)
            unread = frozenset({"Node", "NodeClaim"})
            seen = replace(seen, nodes=(), node_claims=(), complete=False, gaps=gaps, unread=unread)
        return seen

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        result = self.cluster.write(write, dry_run=dry_run)
        if result.ok and not dry_run:
            self._full.pop(_PARTS.get(write.ref.kind, ""), None)
        return result


def _partly(new: Sequence[Any], old: Sequence[Any], behind: int) -> tuple[Any, ...]:
    """The last objects by name as they were, if they were there."""
    first = len(new) - behind
    return (*new[: max(0, first)], *old[max(0, first) :]) if behind else tuple(new)


def _unregistered(node: Node) -> Node:
    labels = tuple(item for item in node.labels if item[0] not in {REGISTERED_LABEL, INITIALIZED_LABEL})
    return replace(node, labels=labels, taints=(*node.taints, _UNREGISTERED), ready=False, node_claim_uid="")


EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


def settings(*, check: bool) -> Settings:
    return load_settings(
        None,
        environment={},
        flags={
            "repository": str(EXAMPLES),
            "path": "clusters/production",
            "cluster": f"embedded:{EXAMPLES / 'snapshots' / 'production'}",
            "placement.check": check,
        },
    )


@pytest.fixture
def checked() -> Iterator[Session]:
    with open_session(settings(check=True), now=NOW, progress=lambda _stage: None) as session:
        yield session


def spoiled(*arguments: Any, **options: Any) -> Placement:
    """The real placement, but with a hundred times as many chunks on its first new node."""
    placement = place_in_mode(*arguments, **options)
    first, *others = placement.planned
    crowd = tuple(replace(holding, count=holding.count * 100) for holding in first.holdings)
    return replace(placement, planned=(replace(first, holdings=crowd), *others))


def test_a_placement_that_holds_passes_unnoticed(checked: Session) -> None:
    plan = checked.cycle.plan().required_plan
    assert plan.node_claims.create
    assert "placement-rejected" not in {finding.code for finding in plan.findings}


def test_a_placement_that_breaks_a_rule_is_an_error_and_is_not_applied(
    checked: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "place_in_mode", spoiled)
    plan = checked.cycle.plan().required_plan
    found = [finding for finding in plan.findings if finding.code == "placement-rejected"]
    assert {finding.severity for finding in found} == {Severity.ERROR}
    assert any("cpu is overcommitted" in finding.message for finding in found)
    before = checked.cluster.view()
    result = checked.cycle.run("test")
    assert isinstance(result.failure, Stalled)
    assert result.failure.reason == "PlacementRejected"
    assert result.change_set is None
    assert checked.cluster.view() == before


def test_one_broken_rule_is_one_rule() -> None:
    state = PassState(NOW, broken_rules=("node-4: cpu is overcommitted",))
    with pytest.raises(Stalled) as caught:
        Render(TemplateSource({})).run(state)
    words = "the placement breaks 1 rule, the first: node-4: cpu is overcommitted; nothing is applied"
    assert caught.value.message == words


def test_an_explanation_says_that_the_placement_was_rejected(checked: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "place_in_mode", spoiled)
    found = explanation(checked.cycle.plan().required_plan, "CapacityBuffer/shop/web")
    assert "placement-rejected" in {finding.code for finding in found.findings}
    assert "cpu is overcommitted" in explanation_text(found)


# The optimal mode in a whole pass: the plan says under its cost what came of it, and within which time.


def sentences(mode: str, within: str) -> str:
    settings = load_settings(
        None,
        environment={},
        flags={
            "repository": str(EXAMPLES),
            "path": "clusters/production",
            "cluster": f"embedded:{EXAMPLES / 'snapshots' / 'production'}",
            "placement.mode": mode,
            "placement.optimal_within": within,
        },
    )
    with open_session(settings, now=NOW, progress=lambda _stage: None) as session:
        return "\n".join(session.cycle.plan().required_plan.cost.assumptions)


def test_when_the_time_is_over_the_fast_placement_stands() -> None:
    assert "the time for it was over: the fast placement stands" in sentences("optimal", "1ms")


# A machine that one watch tells of before another is neither lost nor there twice.

MACHINES = 6
PODS = 3 * MACHINES
each_delay = pytest.mark.parametrize(
    ("part", "count", "young"),
    [
        pytest.param(part, count, young, id=f"{count}-{part}-{'unregistered' if young else 'registered'}")
        for part in (NODE_CLAIMS, NODES)
        for count in (MACHINES, 2)
        for young in (False, True)
    ],
)
"""count: of the kind's objects, how many are seen late. young: nodes are seen before Karpenter has registered them."""


def delayed_shop(*, young: bool) -> tuple[BatchShop, DelayedCluster]:
    """Its pool has room for one node more than is needed."""
    shop = BatchShop(pool=node_pool(limits={"nodes": str(MACHINES + 1)}))
    delayed = DelayedCluster(shop.cluster, young=young)
    shop.cluster = delayed  # type: ignore[assignment]
    shop.restart()
    return shop, delayed


@each_delay
def test_an_attempt_does_not_fail_because_one_watch_is_behind(part: str, count: int, *, young: bool) -> None:
    shop, delayed = delayed_shop(young=young)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC))
    shop.run()
    delayed.behind = {part: count}
    made = shop.claims()
    shop.sandbox.wait(10)
    for _ in range(4):
        shop.run()
        shop.sandbox.wait(1)
    delayed.behind = {}
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert shop.attempts() == ["1"] * MACHINES
    assert shop.claims() == shop.held() == made


@each_delay
def test_a_buffer_keeps_its_nodes_while_one_watch_is_behind(part: str, count: int, *, young: bool) -> None:
    shop, delayed = delayed_shop(young=young)
    shop.cluster.apply(workload(replicas=0, cpu="3"))
    shop.cluster.apply(buffer(replicas=MACHINES))
    shop.run()
    delayed.behind = {part: count}
    made = shop.claims()
    shop.sandbox.wait(10)
    for _ in range(4):
        changes = shop.run().required_plan.node_claims
        assert (changes.create, changes.delete, changes.release) == ((), (), ())
        shop.sandbox.wait(1)
    delayed.behind = {}
    shop.settle()
    assert shop.claims() == shop.held() == made
    assert len(made) == MACHINES


def limit(shop: BatchShop, nodes: int) -> None:
    """The pool has more than it may: no node can be made in place of another."""
    shop.cluster.apply(node_pool(limits={"nodes": str(nodes)}))


def test_an_attempt_does_not_fail_while_its_nodes_cannot_be_read() -> None:
    shop, delayed = delayed_shop(young=False)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC, parameters={"ValidUntilSeconds": "3600"}))
    shop.run()
    shop.sandbox.wait(3)
    made = shop.claims()
    limit(shop, 0)
    delayed.is_cut_off = True
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "AttemptUnderWay")
    delayed.is_cut_off = False
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert shop.attempts() == ["1"] * MACHINES
    assert shop.claims() == shop.held() == made


def test_a_booking_is_not_revoked_while_its_nodes_cannot_be_read() -> None:
    shop, delayed = delayed_shop(young=False)
    shop.settle(request(count=PODS, class_name=ATOMIC))
    limit(shop, 0)
    delayed.is_cut_off = True
    shop.run()
    delayed.is_cut_off = False
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert "CapacityRevoked" not in shop.conditions()


def test_a_node_claim_that_cannot_be_read_is_no_launch_that_failed() -> None:
    shop, delayed = delayed_shop(young=False)
    shop.cluster.apply(request(count=PODS, class_name=ATOMIC))
    shop.run()
    delayed.is_cut_off = True
    assert shop.run().required_plan.stock_outs == ()
