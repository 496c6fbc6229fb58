"""NodePools and NodeOverlays: reading, old spellings, partial pools, and the rules beyond the admission cases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.node_pool import budgets_alone, lay_over
from reconciler.manifests.repository.reading import read_rendered
from reconciler.model.errors import Invalid
from reconciler.model.findings import Severity
from reconciler.model.nodes import DisruptionBudget, NodeClassRef, NodePool
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import LiveObject
from tests.unit.manifests.reading import check, codes_of, declared, findings, found

HEAD = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n"
TEMPLATE = """\
  template:
    metadata: {labels: {team: a}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64, arm64], minValues: 2}]
"""
BETA = HEAD.replace("/v1", "/v1beta1")
OVERLAY = "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\nspec:\n  requirements: []\n"


def pool(text: str) -> NodePool:
    (read,) = declared(text).node_pools
    return read


@pytest.mark.parametrize("budget", ["{}", "{nodes: null}"])
def test_a_budget_without_nodes_has_the_default_of_the_api_server(budget: str) -> None:
    text = HEAD + TEMPLATE + f"  disruption: {{budgets: [{budget}]}}\n"
    assert findings(text) == []
    assert pool(text).budgets == (DisruptionBudget("10%"),)
    (partial,) = declared(HEAD + f"  disruption: {{budgets: [{budget}]}}\n").manifests
    alone = budgets_alone(partial)
    assert alone is not None
    assert alone.budgets == (DisruptionBudget("10%"),)


def test_a_default_of_nodes_in_local_time() -> None:
    head = HEAD.replace("name: general", "name: general, annotations: {headroom.dev/timezone: Europe/Berlin}")
    text = head + "  disruption: {budgets: [{schedule: '0 9 * * *', duration: 8h}]}\n"
    local = in_utc(declared(text), datetime(2026, 1, 1, tzinfo=UTC))
    assert {budget.nodes for budget in local.pools[0].compiled.budgets} == {"10%"}


@pytest.mark.parametrize("reasons", ["Unhealthy", "Drifted, Unhealthy"])
def test_a_reason_that_the_api_server_refuses_is_told_with_what_to_write(reasons: str) -> None:
    """`reasons: [Unhealthy]` had no finding, though Karpenter 1.14 refuses the pool."""
    text = HEAD + TEMPLATE + f"  disruption: {{budgets: [{{nodes: 20%}}, {{nodes: '1', reasons: [{reasons}]}}]}}\n"
    (finding,) = [item for item in findings(text) if item.code == "unhealthy-reason"]
    assert finding.severity is Severity.WARNING
    assert finding.path == f"spec.disruption.budgets[1].reasons[{reasons.split(', ').index('Unhealthy')}]"
    assert finding.hint.startswith("remove it, since node repair asks no budget in 1.14")


def test_a_rendered_node_claim_with_an_unknown_field_is_refused() -> None:
    text = """\
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: a, labels: {karpenter.sh/nodepool: general, headroom.dev/placeholder: 'true'}}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
  resources: {claims: {gpu: {count: 1}}}
"""
    with pytest.raises(Invalid, match=r"line 7: spec.resources.claims is not a field of this kind"):
        read_rendered("a", text)


def test_a_pool_with_everything() -> None:
    read = pool(
        HEAD
        + TEMPLATE
        + "      taints: [{key: a, value: b, effect: NoSchedule}]\n"
        + "      startupTaints: [{key: c, effect: NoExecute}]\n"
        + "      expireAfter: Never\n      terminationGracePeriod: 1h30m\n"
        + "  weight: 7\n  limits: {cpu: 10, nodes: 3}\n"
        + "  disruption: {consolidateAfter: Never, consolidationPolicy: WhenEmpty, budgets: [{nodes: '0', reasons: [],"
        + " schedule: '@daily', duration: 8h}]}\n"
    )
    template = read.template
    assert template.requirements == (Requirement("kubernetes.io/arch", Operator.IN, ("amd64", "arm64"), 2),)
    assert (template.taints, template.startup_taints) == (
        (Taint("a", "b", "NoSchedule"),),
        (Taint("c", "", "NoExecute"),),
    )
    assert template.node_class == NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "default")
    assert (template.expire_after, template.termination_grace_period) == (None, timedelta(minutes=90))
    assert template.labels == (("team", "a"),)
    assert (read.weight, read.limits, read.consolidate_after) == (7, (("cpu", 10000), ("nodes", 3)), None)
    assert read.consolidation_policy == "WhenEmpty"
    assert read.budgets == (DisruptionBudget("0", (), "@daily", timedelta(hours=8)),)


def test_defaults_are_karpenters() -> None:
    read = pool(HEAD + TEMPLATE)
    assert read.template.expire_after == timedelta(hours=720)
    assert (read.consolidate_after, read.consolidation_policy) == (timedelta(0), "WhenEmptyOrUnderutilized")
    assert (read.budgets, read.limits, read.replicas) == ((DisruptionBudget("10%"),), None, None)


def test_no_budgets_at_all_stays_no_budgets() -> None:
    assert pool(HEAD + TEMPLATE + "  disruption: {consolidateAfter: 0s, budgets: []}\n").budgets == ()


def test_consolidate_after_is_written_out_where_karpenters_definition_requires_it() -> None:
    (manifest,) = declared(HEAD + TEMPLATE + "  disruption: {budgets: []}\n").manifests
    assert manifest.manifest["spec"]["disruption"] == {"budgets": [], "consolidateAfter": "0s"}


def test_one_reason_is_a_list_of_one() -> None:
    (manifest,) = declared(HEAD + "  disruption: {budgets: [{nodes: '1', reason: drifted}]}\n").manifests
    assert manifest.manifest["spec"]["disruption"]["budgets"] == [{"nodes": "1", "reasons": ["Drifted"]}]


@pytest.mark.parametrize("reasons", ["[expired]", "[drifted, expired]", "[Expired, Empty]"])
def test_expired_is_no_reason_any_more(reasons: str) -> None:
    found = findings(HEAD + f"  disruption: {{budgets: [{{nodes: '1', reasons: {reasons}}}]}}\n")
    (finding,) = [finding for finding in found if finding.severity == "error"]
    assert finding.code == "removed-reason"
    assert "expireAfter" in finding.hint


def test_v1beta1_is_converted_field_by_field() -> None:
    text = BETA + TEMPLATE.replace("group: karpenter.kwok.sh", "apiVersion: karpenter.kwok.sh/v1alpha1")
    text += "      kubelet: {maxPods: 10}\n  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 24h}\n"
    (manifest,) = declared(text).manifests
    spec = manifest.manifest["spec"]
    assert spec["disruption"] == {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    assert spec["template"]["spec"]["expireAfter"] == "24h"
    assert spec["template"]["spec"]["nodeClassRef"]["group"] == "karpenter.kwok.sh"
    assert "kubelet" not in spec["template"]["spec"]
    assert codes_of(text) == ["old-spelling", "old-spelling", "not-converted", "old-spelling", "old-spelling"]


def test_a_moved_field_is_judged_where_it_stands() -> None:
    text = BETA + TEMPLATE + "  disruption:\n    expireAfter: 7d\n"
    (wrong,) = [finding for finding in findings(text) if finding.severity == "error"]
    assert (wrong.code, wrong.path, wrong.position and wrong.position.line) == (
        "invalid-value",
        "spec.disruption.expireAfter",
        11,
    )


def test_a_partial_pool_has_no_life_time_to_set() -> None:
    (manifest,) = declared(BETA + "  disruption: {expireAfter: Never}\n").manifests
    assert manifest.manifest["spec"] == {"disruption": {}}
    assert "not-converted" in codes_of(BETA + "  disruption: {expireAfter: Never}\n")


LIVE_SPEC: dict[str, Any] = {
    "weight": 3,
    "limits": {"cpu": "10", "memory": "1Gi"},
    "disruption": {"consolidateAfter": "1m", "budgets": [{"nodes": "10%"}]},
    "template": {
        "spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "requirements": [], "expireAfter": "1h"}
    },
}


def test_a_partial_pool_is_laid_over_the_live_one() -> None:
    (partial,) = declared(HEAD + "  limits: {cpu: 20}\n  disruption: {budgets: [{nodes: '2'}]}\n").manifests
    ref = ObjectRef("karpenter.sh", "NodePool", "", "general")
    body = {"metadata": {"name": "general", "uid": "u"}, "spec": LIVE_SPEC}
    read = lay_over(partial, LiveObject(ref, body))
    assert read.limits == (("cpu", 20000), ("memory", 2**30))
    assert read.budgets == (DisruptionBudget("2"),)
    assert (read.weight, read.consolidate_after, read.uid) == (3, timedelta(minutes=1), "u")
    assert read.position == partial.position


def test_a_partial_pool_needs_a_live_one_that_is_a_pool() -> None:
    (partial,) = declared(HEAD + "  weight: 2\n").manifests
    broken: list[dict[str, Any]] = [{}, {"template": {"spec": {}}}]
    for spec in broken:
        with pytest.raises(Invalid, match="NodePool/general"):
            lay_over(partial, LiveObject(partial.ref, {"metadata": {}, "spec": spec}))


@pytest.mark.parametrize(("field", "text"), [("price", "999999.5"), ("priceAdjustment", "+2000000%")])
def test_less_than_a_million_dollars_an_hour_is_a_price(field: str, text: str) -> None:
    assert len(declared(f"{OVERLAY}  {field}: '{text}'\n").node_overlays) == 1


def test_an_overlay() -> None:
    requirements = "  requirements: [{key: karpenter.sh/nodepool, operator: Exists}]\n"
    text = (
        OVERLAY.replace("  requirements: []\n", requirements)
        + "  weight: 2\n  priceAdjustment: '-10%'\n  capacity: {a.b/c: 1}\n"
    )
    (overlay,) = declared(text).node_overlays
    assert (overlay.weight, overlay.price, overlay.price_adjustment) == (2, None, "-10%")
    assert overlay.capacity.quantities() == {"a.b/c": "1"}
    assert overlay.requirements[0].key == "karpenter.sh/nodepool"


def pool_with(label: str = "team: a", requirement: str = "") -> str:
    old = "{key: kubernetes.io/arch, operator: In, values: [amd64, arm64], minValues: 2}"
    return HEAD + TEMPLATE.replace("team: a", label).replace(old, requirement or old)


CAPACITY = "{key: karpenter.sh/capacity-type, operator: In, values: [VALUES]}"
BUDGETS = "spec.disruption.budgets[0]"
SPEC = "spec.template.spec"
DECODE = "Karpenter cannot decode"


@found(
    ("a misspelt field of a budget is an error, since its default would count",
     HEAD + "  disruption: {budgets: [{nodez: '0'}]}\n", "invalid-value", f"{BUDGETS}.nodez", 'did you mean "nodes"?'),
    ("a number is no time", HEAD + TEMPLATE + "  disruption: {consolidateAfter: 5}\n", "wrong-type",
     "spec.disruption.consolidateAfter", 'must be text, not the number 5; write it like "1m"'),
    ("nodes are never below none", HEAD + TEMPLATE + "  disruption: {budgets: [{nodes: -1}]}\n", "invalid-value",
     f"{BUDGETS}.nodes", 'has a value that is not allowed: "-1"; write it like "10%"'),
    ("an empty list of reasons", HEAD + TEMPLATE + "  disruption: {budgets: [{nodes: '1', reasons: []}]}\n",
     "reasons-match-nothing", f"{BUDGETS}.reasons", ""),
    ("a duration without a schedule", HEAD + TEMPLATE + "  disruption: {budgets: [{nodes: '1', duration: 1h}]}\n",
     "schedule-without-duration", BUDGETS, ""),
    ("Karpenter's own label", pool_with("karpenter.sh/nodepool: x"), "restricted-label", "", ""),
    ("a label of Karpenter's domain", pool_with("sub.karpenter.sh/x: x"), "restricted-label", "", ""),
    ("the hostname as a label", pool_with("kubernetes.io/hostname: x"), "restricted-label", "", ""),
    ("a label that is too long", pool_with(f"{'a' * 64}: x"), "never-ready", "", ""),
    ("one capacity type of two is misspelt", pool_with(requirement=CAPACITY.replace("VALUES", "spot, sopt")),
     "unknown-capacity-type", "", ""),
    ("the only capacity type is misspelt", pool_with(requirement=CAPACITY.replace("VALUES", "sopt")), "never-ready", "", ""),
    ("a misspelt label", pool_with(requirement="{key: kubernetes.io/arhc, operator: In, values: [amd64]}"), "misspelt-label",
     "spec.template.spec.requirements[0].key", 'did you mean "kubernetes.io/arch"?'),
    ("a value with a space", pool_with(requirement="{key: a, operator: In, values: ['b c']}"), "never-ready", "", ""),
    ("fewer values than minValues", pool_with(requirement="{key: a, operator: In, values: [b], minValues: 2}"),
     "requirement-values", "", ""),
    ("Gt of less than nothing", pool_with(requirement="{key: a, operator: Gt, values: ['-1']}"), "requirement-values", "", ""),
    ("a requirement of Karpenter's domain", pool_with(requirement="{key: karpenter.sh/other, operator: Exists}"),
     "restricted-label", "", ""),
    ("a price of more than a million dollars an hour", OVERLAY + "  price: '1000000000000000'\n", "invalid-value",
     "spec.price", "1000000000000000 is a million dollars an hour or more"),
    ("a dearer one by more than a million", OVERLAY + "  priceAdjustment: '+2000000'\n", "invalid-value",
     "spec.priceAdjustment", "+2000000 is a million dollars an hour or more"),
    ("a cheaper one by more than a million", OVERLAY + "  priceAdjustment: '-2000000'\n", "invalid-value",
     "spec.priceAdjustment", "-2000000 is a million dollars an hour or more"),
    ("a price and an adjustment", OVERLAY + "  price: '1'\n  priceAdjustment: '+5%'\n", "price-and-adjustment", "", ""),
    ("more of a resource that each type has", OVERLAY + "  capacity: {cpu: 1}\n", "standard-resource", "", ""),
    ("a price that is a number", OVERLAY + "  price: 1.5\n", "wrong-type", "", ""),
    ("NotIn of no values", OVERLAY.replace("[]", "[{key: a, operator: NotIn, values: []}]"), "requirement-values", "", ""),
    ("a time that is too long", HEAD + TEMPLATE + "  disruption: {consolidateAfter: 2562048h}\n", "invalid-value",
     "spec.disruption.consolidateAfter", DECODE),
    ("a life that is too long", HEAD + TEMPLATE + "      expireAfter: 9999999999999999999999h\n", "invalid-value",
     f"{SPEC}.expireAfter", DECODE),
    ("a grace that is too long", HEAD + TEMPLATE + "      terminationGracePeriod: 2562048h\n", "invalid-value",
     f"{SPEC}.terminationGracePeriod", DECODE),
    ("a time that is too long for a partial pool", HEAD + "  disruption: {consolidateAfter: 2562048h}\n", "invalid-value",
     "spec.disruption.consolidateAfter", DECODE),
)  # fmt: skip
def test_what_a_pool_or_an_overlay_cannot_be(text: str, code: str, path: str, words: str) -> None:
    check(text, code, path, words)
