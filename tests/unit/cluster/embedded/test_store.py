"""The embedded API: server-side apply, owners, versions, dry runs, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.changes import Annotate, ApplyStatus, Delete, Outcome
from reconciler.model.refs import ObjectRef
from tests.builders import buffer_ref, manifest
from tests.fakes.embedded import Document, Sandbox, apply, buffer, claim_ref, node_claim, node_pool, pool_ref


def body(sandbox: Sandbox, ref: ObjectRef) -> Any:
    return sandbox.cluster.live(ref)


def test_a_changed_spec_is_a_new_generation_and_a_changed_label_is_not() -> None:
    sandbox = Sandbox()
    sandbox.write(apply(buffer()))
    sandbox.write(apply(buffer(replicas=4)))
    assert body(sandbox, buffer_ref())["metadata"]["generation"] == 2
    labelled = buffer(replicas=4)
    labelled["metadata"]["labels"] = {"team": "shop"}
    sandbox.write(apply(labelled))
    assert body(sandbox, buffer_ref())["metadata"]["generation"] == 2


def test_a_field_no_longer_mentioned_goes_and_one_that_another_wrote_stays() -> None:
    sandbox = Sandbox()
    mine = node_pool(weight=10)
    mine["metadata"]["labels"] = {"team": "shop", "stage": "prod"}
    sandbox.write(apply(mine))
    theirs: Document = manifest("karpenter.sh/v1", "NodePool", "general", metadata={"labels": {"cost": "42"}})
    sandbox.cluster.apply(theirs, manager="finops")
    mine["metadata"]["labels"] = {"team": "shop"}
    sandbox.write(apply(mine))
    assert body(sandbox, pool_ref())["metadata"]["labels"] == {"team": "shop", "cost": "42"}


def test_a_field_that_two_own_stays_until_both_have_let_it_go() -> None:
    sandbox = Sandbox()
    mine = node_pool()
    mine["metadata"]["labels"] = {"team": "shop"}
    sandbox.write(apply(mine))
    theirs: Document = manifest("karpenter.sh/v1", "NodePool", "general", metadata={"labels": {"team": "shop"}})
    sandbox.cluster.apply(theirs, manager="finops")
    sandbox.write(apply(node_pool()))
    assert body(sandbox, pool_ref())["metadata"]["labels"] == {"team": "shop"}
    del theirs["metadata"]["labels"]
    sandbox.cluster.apply(theirs, manager="finops")
    assert "labels" not in body(sandbox, pool_ref())["metadata"]


def test_an_owner_is_one_item_in_whatever_order_its_fields_are_written() -> None:
    sandbox = Sandbox()
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "a1"}
    pod = manifest("v1", "Pod", "proxy", "shop", metadata={"ownerReferences": [owner]}, spec={"containers": [{}]})
    assert sandbox.cluster.apply(pod)["metadata"]["ownerReferences"] == [owner]
    pod["metadata"]["ownerReferences"] = []
    assert "ownerReferences" not in sandbox.cluster.apply(pod)["metadata"]


def test_a_field_that_another_manager_owns_is_a_conflict_that_names_it_and_changes_nothing() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(buffer(replicas=7), manager="kubectl")
    result = sandbox.write(apply(buffer(replicas=3)))
    assert result.outcome is Outcome.CONFLICT
    assert result.message == (
        'spec.replicas belongs to "kubectl". To take it over, annotate the manifest with headroom.dev/ssa: Override'
    )
    assert body(sandbox, buffer_ref())["spec"]["replicas"] == 7


def test_equal_values_are_no_conflict_and_force_takes_the_field_over() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(buffer(replicas=7), manager="kubectl")
    assert sandbox.write(apply(buffer(replicas=7))).ok
    assert sandbox.write(apply(buffer(replicas=3), force=True)).outcome is Outcome.APPLIED
    managers = sandbox.cluster.view().objects[buffer_ref()].managers
    assert "spec.replicas" in managers["headroom"]
    assert "spec.replicas" not in managers["kubectl"]


def test_an_empty_mapping_gives_up_its_fields_and_leaves_those_of_others() -> None:
    sandbox = Sandbox()
    theirs = node_pool()
    sandbox.cluster.apply(theirs, manager="kubectl")
    sandbox.write(apply(manifest("karpenter.sh/v1", "NodePool", "general", spec={"weight": 7})))
    assert body(sandbox, pool_ref())["spec"]["weight"] == 7
    assert sandbox.write(apply(manifest("karpenter.sh/v1", "NodePool", "general", spec={}))).ok
    assert "weight" not in body(sandbox, pool_ref())["spec"]
    assert body(sandbox, pool_ref())["spec"]["template"] == theirs["spec"]["template"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}}, "no matches for kind 'Widget'"),
        (buffer() | {"apiVersion": "autoscaling.x-k8s.io/v1alpha1"}, "is not served as v1alpha1"),
        (buffer() | {"metadata": {"name": "web", "namespace": "nowhere"}}, "namespaces 'nowhere' not found"),
        (buffer(replicas=-1), "spec.replicas"),
        (node_claim("x", "m-2x") | {"spec": {"requirements": []}}, "spec.nodeClassRef.group"),
    ],
)
def test_what_the_server_would_not_take_is_refused(document: Document, message: str) -> None:
    sandbox = Sandbox()
    for dry_run in (True, False):
        result = sandbox.write(apply(document), dry_run=dry_run)
        assert result.outcome is Outcome.REFUSED
        assert message in result.message


def test_the_spec_of_a_node_claim_cannot_be_changed() -> None:
    sandbox = Sandbox()
    sandbox.write(apply(node_claim("x", "m-2x")))
    result = sandbox.write(apply(node_claim("x", "m-8x")))
    assert (result.outcome, result.message) == (Outcome.REFUSED, "NodeClaim/x is invalid: spec is immutable")


def test_absent_fields_get_their_defaults_and_stay_nobodys() -> None:
    sandbox = Sandbox()
    pool = node_pool()
    del pool["spec"]["disruption"]
    sandbox.write(apply(pool))
    assert body(sandbox, pool_ref())["spec"]["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    assert sandbox.write(apply(pool)).outcome is Outcome.UNCHANGED


def test_annotations_are_merged_and_removed_whoever_set_them() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_claim("x", "m-2x", held=True))
    write = Annotate(claim_ref("x"), (("karpenter.sh/do-not-disrupt", None), ("headroom.dev/held", "true")))
    assert sandbox.write(write, dry_run=True).outcome is Outcome.APPLIED
    assert sandbox.write(write).outcome is Outcome.APPLIED
    assert sandbox.write(write).outcome is Outcome.UNCHANGED
    assert body(sandbox, claim_ref("x"))["metadata"]["annotations"] == {"headroom.dev/held": "true"}


def test_conditions_of_two_writers_live_side_by_side() -> None:
    sandbox = Sandbox()
    sandbox.write(apply(node_pool()))
    sandbox.write(ApplyStatus(pool_ref(), {"conditions": [{"type": "Ours", "status": "True"}]}))
    types = [row["type"] for row in body(sandbox, pool_ref())["status"]["conditions"]]
    assert types == ["Ready", "Ours"]
    sandbox.write(ApplyStatus(pool_ref(), {"conditions": [{"type": "Ours", "status": "False"}]}))
    assert body(sandbox, pool_ref())["status"]["conditions"][1]["status"] == "False"


@pytest.mark.parametrize("write", [ApplyStatus(buffer_ref(), {"replicas": 1}), Annotate(buffer_ref(), (("a", "b"),))])
def test_a_write_to_what_is_gone_is_left_out(write: ApplyStatus | Annotate) -> None:
    for dry_run in (True, False):
        assert Sandbox().write(write, dry_run=dry_run).outcome is Outcome.SKIPPED


def test_deleting_what_is_gone_or_another_of_that_name_does_nothing() -> None:
    sandbox = Sandbox()
    assert sandbox.write(Delete(buffer_ref())).outcome is Outcome.UNCHANGED
    sandbox.write(apply(buffer()))
    assert sandbox.write(Delete(buffer_ref(), uid="another")).outcome is Outcome.UNCHANGED
    uid = body(sandbox, buffer_ref())["metadata"]["uid"]
    assert sandbox.write(Delete(buffer_ref(), uid=uid)).outcome is Outcome.APPLIED
    assert sandbox.cluster.get(buffer_ref()) is None
