"""Disruption budgets: in local time, and those that do something other than they seem to."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reconciler.manifests.local_budgets import InUtc, in_utc, next_renewal
from reconciler.manifests.repository.declared import live_declared, read
from reconciler.manifests.repository.in_force import in_force
from reconciler.model.declared import Declared
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject
from tests.case_files import Case, cases_in, for_each
from tests.manifests import document, node_pool

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HEAD = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: general\n  annotations:\n"
BERLIN = HEAD + "    headroom.dev/timezone: Europe/Berlin\n"
NIGHTS = HEAD + "    headroom.dev/allow-windows: 0 22 * * mon-fri for 8h\n"
TEMPLATE = """\
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
"""
OFFICE = "    budgets:\n    - {nodes: '0', schedule: 0 9 * * mon-fri, duration: 8h}\n    - {nodes: 10%}\n"
MANY = """\
    headroom.dev/timezone: Europe/Berlin
    headroom.dev/allow-windows: |
      7,19,31,43 1,4,7,10,13,16,19 1,8,15,22 * * for 5m
      3,23,49 2,5,8,11,14,17,20 2,9,16,23 * * for 7m
      5,29,51 3,6,9,12,15,18,21 4,13,27 * * for 3m Drifted
"""


def compiled(text: str, now: datetime = NOW) -> InUtc:
    repository = read({"pools.yaml": text.encode()})
    assert not repository.broken
    return in_utc(repository, now)


def applied(found: InUtc) -> list[str]:
    (item,) = found.declared.manifests
    return [
        " ".join(str(value) for value in budget.values()) for budget in item.manifest["spec"]["disruption"]["budgets"]
    ]


def test_schedules_in_the_zone_become_schedules_in_utc() -> None:
    found = compiled(BERLIN + "spec:\n  disruption:\n" + OFFICE + TEMPLATE)
    assert applied(found) == [
        "0 0 8 * 1,2,11,12 mon-fri 8h",
        "0 0 7 * 4-9 mon-fri 8h",
        "0 0 8 1-5,8-12,15-19,22-26 3 * 8h",
        "0 0 7 29-31 3 * 8h",
        "10%",
    ]
    (pool,) = found.declared.node_pools
    assert pool.budgets == found.pools[0].compiled.budgets
    assert found.pools[0].compiled.valid_until == datetime(2027, 10, 1, tzinfo=UTC)


def test_a_zone_that_never_changes_its_clocks_needs_one_budget() -> None:
    found = compiled(BERLIN.replace("Europe/Berlin", "Asia/Kolkata") + "spec:\n  disruption:\n" + OFFICE + TEMPLATE)
    assert applied(found) == ["0 30 3 * * mon-fri 8h", "10%"]


def test_allow_windows_forbid_what_is_outside_and_keep_the_default_inside() -> None:
    found = compiled(NIGHTS + "spec:\n" + TEMPLATE)
    assert applied(found) == ["10%", "0 0 6 * * sat 64h", "0 0 6 * * tue-fri 16h"]


def test_windows_that_some_reasons_have_leave_the_others_free() -> None:
    found = compiled(NIGHTS.replace("8h", "8h Drifted") + "spec:\n" + TEMPLATE)
    assert applied(found) == ["10%", "0 ['Drifted'] 0 6 * * sat 64h", "0 ['Drifted'] 0 6 * * tue-fri 16h"]


def test_the_form_stays_the_same_for_a_month_and_is_then_renewed() -> None:
    text = BERLIN + "spec:\n  disruption:\n" + OFFICE + TEMPLATE
    assert applied(compiled(text)) == applied(compiled(text, datetime(2026, 11, 30, 23, 59, tzinfo=UTC)))
    assert applied(compiled(text)) != applied(compiled(text, datetime(2026, 12, 1, tzinfo=UTC)))
    assert next_renewal(read({"a.yaml": text.encode()}), NOW) == datetime(2026, 12, 1, tzinfo=UTC)


def test_a_partial_pool_is_compiled_before_it_is_laid_over() -> None:
    found = compiled(BERLIN + "spec:\n  disruption:\n" + OFFICE)
    whole = read({"live.yaml": (HEAD.replace("  annotations:\n", "") + "spec:\n" + TEMPLATE).encode()}).manifests[0]
    ref = ObjectRef("karpenter.sh", "NodePool", "", "general")
    objects = {ref: LiveObject(ref, whole.manifest)}
    forms = in_force(found.declared, live_declared(ClusterView(objects=objects)), objects, {})
    (pool,) = forms.effective.node_pools
    assert pool.budgets == found.pools[0].compiled.budgets


def test_what_cannot_be_compiled_is_told_and_keeps_its_last_good_version() -> None:
    refused = read({"pools.yaml": (HEAD + MANY + "spec:\n" + TEMPLATE).encode()})
    assert [finding.code for finding in refused.findings] == ["too-many-budgets"]
    assert refused.broken == {ObjectRef("karpenter.sh", "NodePool", "", "general")}
    assert refused.manifests == ()


def test_a_pass_leaves_out_what_cannot_be_compiled_and_never_prunes_it() -> None:
    """As it would be for windows that are too many only in the present months."""
    ref = ObjectRef("karpenter.sh", "NodePool", "", "general")
    (sound,) = read({"pools.yaml": (NIGHTS + "spec:\n" + TEMPLATE).encode()}).manifests
    lines = "".join(f"{number} {number % 24} {number % 28 + 1} * * for {number + 1}m\n" for number in range(60))
    metadata = {"name": "general", "annotations": {"headroom.dev/allow-windows": lines}}
    crowded = replace(sound, manifest={**sound.manifest, "metadata": metadata})
    found = in_utc(Declared(manifests=(crowded,)), NOW)
    assert [(finding.code, finding.ref) for finding in found.findings] == [("too-many-budgets", ref)]
    assert found.declared.manifests == ()
    assert found.declared.broken == {ref}


LINTS = cases_in("budget_lints.yaml")


def findings_of(case: Case) -> tuple[Finding, ...]:
    spec: dict[str, Any] = {"template": document(node_pool())["spec"]["template"]}
    if "budgets" in case:
        budgets = case["budgets"]
        many = [{"nodes": str(number)} for number in range(budgets)] if isinstance(budgets, int) else budgets
        spec["disruption"] = {"consolidateAfter": "1m", "budgets": many}
    metadata = {"name": "general", "annotations": case.get("annotations", {})}
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}
    return read({"pools.json": json.dumps(body).encode()}).findings


def place(finding: Finding) -> str:
    path = finding.path.removeprefix("spec.disruption.")
    return f"{finding.code} at {path.partition('[')[0] if path.startswith('metadata') else path}"


@for_each(LINTS)
def test_what_is_said_of_budgets(case: Case) -> None:
    found = findings_of(case)
    assert [place(finding) for finding in found] == case["findings"]
    for finding in found:
        assert case.get("message", "") in finding.message
        assert case.get("hint", "") in finding.hint


@for_each([case for case in LINTS if "good" in case])
def test_nothing_is_said_of_what_was_meant(case: Case) -> None:
    assert findings_of(case["good"]) == ()


@for_each(cases_in("budget_examples.yaml"))
def test_the_examples_of_the_proposal_are_read_or_told(case: Case) -> None:
    declared = read({"example.yaml": case["document"].encode()})
    assert [f"{finding.code} at {finding.path}" for finding in declared.findings] == case["findings"]
    is_accepted = not any(finding.severity is Severity.ERROR for finding in declared.findings)
    assert [item.manifest["spec"] for item in declared.manifests] == ([case["applied"]] if is_accepted else [])
