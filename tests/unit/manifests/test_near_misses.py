"""A slip in a kind, a group or a key at the top is an error; what belongs to somebody else is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifests.kinds import KINDS
from reconciler.manifests.repository.declared import read
from reconciler.model.findings import Severity
from tests.unit.manifests.reading import findings, only

FOREIGN = (Path(__file__).parents[2] / "cases" / "foreign_kinds.txt").read_text(encoding="utf-8").splitlines()
REST = "metadata: {name: web, namespace: shop}\nspec: {podTemplateRef: {name: t}, replicas: 1}\n"
BUFFER = f"apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\n{REST}"


def test_kinds_of_others_are_no_error() -> None:
    """The kinds of Kubernetes and of what is often beside headroom: none of them looks like one of its own."""
    wrong = []
    for line in FOREIGN:
        version, kind = line.split()
        text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web, namespace: shop}}\nspec: {{replicas: 1}}\n"
        said = read({"a.yaml": text.encode()}).findings
        wrong += [f"{line}: {finding.message}" for finding in said if finding.severity is not Severity.INFO]
    assert wrong == []
    assert len(FOREIGN) > 150


def test_each_kind_in_the_group_of_another_of_ours_is_an_error() -> None:
    """No group has two kinds of one name, so whoever writes NodePool below apps/v1 means Karpenter's."""
    for kind in KINDS:
        for other in KINDS:
            if kind.applied and kind.group != other.group:
                text = f"apiVersion: {other.api_version(other.versions[0])}\nkind: {kind.name}\n{REST}"
                assert only(text).severity is Severity.ERROR, text


@pytest.mark.parametrize(
    ("old", "new", "code", "hint"),
    [
        ("x-k8s.io/", "x-k8s.oi/", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("x-k8s.io/", "k8s.io/", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("x-k8s.io/", "x-k8s.com/", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("autoscaling.x-k8s.io/", "karpenter.sh/", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("autoscaling.x-k8s.io/", "", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("x-k8s.io/v1beta1", "x-k8s.iov1beta1", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("x-k8s.io/v1beta1", "x-k8s.io/v1beta1/", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("autoscaling.x-k8s.io/", "x-k8s.io/", "unknown-kind", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("CapacityBuffer", "CapBuffer", "unknown-kind",
         "write one of its kinds: Buffer, CapacityBuffer, ProvisioningClass, ProvisioningRequest"),
        ("CapacityBuffer", "Capacitybufer", "unknown-kind", 'did you mean "CapacityBuffer"?'),
        ("x-k8s.io/v1beta1\nkind: CapacityBuffer", "x-k8s.oi/v1beta1\nkind: CapacityBufer", "unknown-kind",
         "write apiVersion: autoscaling.x-k8s.io/v1beta1 and kind: CapacityBuffer"),
        ("kind:", "Kind:", "misspelt-field", "write kind"),
        ("kind:", "knid:", "misspelt-field", "write kind"),
        ("apiVersion:", "apiversion:", "misspelt-field", "write apiVersion"),
        ("kind: CapacityBuffer\n", "", "missing-field", "write kind: …"),
        ("kind: CapacityBuffer", "kind:", "missing-field", "write kind: …"),
        ("apiVersion: autoscaling.x-k8s.io/v1beta1\n", "", "missing-field", "write apiVersion: autoscaling.x-k8s.io/v1beta1"),
        ("apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\n", "", "missing-field", "write apiVersion: …"),
        ("apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\n", "Kind: CapacityBuffer\n", "missing-field", "write apiVersion: …"),
    ],
)  # fmt: skip
def test_a_slip_at_the_top(old: str, new: str, code: str, hint: str) -> None:
    assert BUFFER.count(old) == 1
    finding = findings(BUFFER.replace(old, new))[0]
    assert (finding.severity, finding.code, finding.hint) == (Severity.ERROR, code, hint)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"metdata: {{name: web}}\n{BUFFER.replace('metadata: {name: web, namespace: shop}', '')}", "misspelt-field"),
        ("apiVersion: v1\nkind: List\nitmes: [{kind: X}]\n", "misspelt-field"),
        ("apiVersion: v1\nkind: List\n", "missing-field"),
        ("apiVersion: v1\nkind: Lsit\nitems: [{kind: X}]\n", "unknown-kind"),
        ("apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitem: []\n", "misspelt-field"),
        ("apiVersion: core/v1\nkind: PodTemplate\nmetadata: {name: t}\n", "unknown-kind"),
        ("apiVersion: v1/\nkind: PodTemplate\nmetadata: {name: t}\n", "unknown-kind"),
        ("apiVersion: v1\nkind: List\nitems: [web]\n", "wrong-type"),
        ("- apiVersion: karpenter.sh/v1\n  kind: NodePool\n", "wrong-type"),
        ("apiVersion karpenter.sh/v1\nkind NodePool\n", "wrong-type"),
        ("pool:\n  apiVersion: karpenter.sh/v1\n  kind: NodePool\n", "misspelt-field"),
        ("apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: web}\nspec: {}\n", "unknown-kind"),
        ("apiVersion: app/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {}\n", "unknown-kind"),
    ],
)
def test_slips_in_lists_workloads_and_metadata(text: str, code: str) -> None:
    assert code in [item.code for item in findings(text) if item.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v2\nname: chart\nversion: 1.0.0\ndependencies: []\n",
        "kind: pipeline\ntype: docker\nname: default\nsteps: []\n",
        "replicaCount: 3\nbind: 0.0.0.0\nimage: {tag: x}\n",
        "resources: [a.yaml]\nnamespace: shop\n",
        "openapi: 3.0.0\ninfo: {title: x}\npaths: {}\n",
        "version: 2\nupdates: []\n",
        "services: {web: {image: x}}\n",
        "- a\n- b: 1\n",
        "just text\n",
        "extra: {apiVersion: v1, kind: ConfigMap}\n",
    ],
)
def test_files_of_other_tools_are_no_error(text: str) -> None:
    assert [item for item in findings(text) if item.severity is not Severity.INFO] == []


def test_flow_yaml_with_a_comma_in_a_value_is_an_error() -> None:
    """`{weekdays: Mon,Tue,Wed, hours: 9}` is Monday alone, and the keys Tue and Wed with null."""
    text = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: office, namespace: shop}
spec:
  schedule:
    defaultReplicas: 1
    behaviors:
      - {replicas: 3, start: {weekdays: Mon,Tue,Wed, hours: 9}, end: {weekdays: "Mon,Tue,Wed", hours: 17}}
"""
    found = [(item.severity, item.path) for item in findings(text)]
    place = "spec.schedule.behaviors[0].start"
    assert found == [(Severity.ERROR, f"{place}.Tue"), (Severity.ERROR, f"{place}.Wed")]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("{replicas: 1, podTemplateRef: {name: t}, scaleableRef: }", "spec.scaleableRef"),
        ("{replicas: 1, podTemplateRef: {name: t, nmae: }}", "spec.podTemplateRef.nmae"),
        ("{replicas: 1, podTemplateRef: {name: t}, limits: {cpu: ~}}", "spec.limits.cpu"),
    ],
)
def test_null_hides_no_unknown_field_and_no_entry_of_a_map(spec: str, path: str) -> None:
    finding = only(BUFFER[: BUFFER.index("spec:")] + f"spec: {spec}\n")
    assert (finding.severity, finding.path) == (Severity.ERROR, path)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("weekdays: Mon", "weekdays: ", "spec.schedule.behaviors[0].start.weekdays"),
        ("timezone: Europe/Berlin", "timezone: ", "spec.schedule.timezone"),
        ("reasons: [Empty]", "reasons: ", "spec.disruption.budgets[0].reasons"),
    ],
)
def test_a_schedule_or_budget_whose_field_has_lost_its_value_is_an_error(old: str, new: str, path: str) -> None:
    """Without weekdays a window would be open every day, and without reasons a budget counts for all."""
    text = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: office, namespace: shop}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 1
    behaviors: [{replicas: 3, start: {weekdays: Mon, hours: 9}, end: {weekdays: Mon, hours: 17}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {disruption: {budgets: [{nodes: 10%, reasons: [Empty]}]}}
"""
    finding = only(text.replace(old, new, 1))
    assert (finding.severity, finding.path) == (Severity.ERROR, path)


def test_null_of_fields_that_tools_print_is_no_finding() -> None:
    text = BUFFER.replace("name: web,", "name: web, creationTimestamp: null,") + "status: null\n"
    assert findings(text) == []


def test_a_label_may_be_called_as_a_field_of_a_pod_is() -> None:
    text = """
apiVersion: v1
kind: PodTemplate
metadata: {name: t, namespace: shop}
template: {spec: {containers: [{name: c}], nodeSelector: {os: linux, hostname: a, priority: high}}}
"""
    assert findings(text) == []
