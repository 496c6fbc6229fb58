"""What a repository's template may write beside the plan: nothing by which its writer gets more than a manifest gives.

HEADROOM_SCENARIOS=10000 makes as many documents; each has a seed, which alone makes it again.
"""

from __future__ import annotations

import copy
import os
import random
from typing import Any

import pytest

from reconciler.files import packaged_texts
from reconciler.manifests.repository.reading import read_rendered
from reconciler.model.errors import Invalid
from reconciler.model.nodes import node_claim_ref
from reconciler.render.allowed import check_balloon, check_node_claim, check_node_pool
from reconciler.render.check import representative_balloons, representative_changes, representative_creations
from reconciler.render.templates import RenderProcess, TemplateSource
from reconciler.render.writes import node_claim_context, node_claim_document
from tests.unit.render.restricted import breaches, mutated_balloon, packaged_balloon

SCENARIOS = int(os.environ.get("HEADROOM_SCENARIOS", "400"))
PLANNED = representative_balloons()[0]
CREATION, POOL = representative_creations()[0]
POD = "spec.template.spec"


@pytest.fixture(scope="module")
def balloon() -> dict[str, Any]:
    return packaged_balloon(PLANNED)


@pytest.fixture(scope="module")
def claim() -> dict[str, Any]:
    """As the packaged template writes it."""
    process = RenderProcess()
    templates = TemplateSource(packaged_texts("templates", suffix=".j2"), process=process).of({})
    try:
        return dict(node_claim_document(templates, CREATION, POOL, read_rendered))
    finally:
        process.close()


def put(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with one field; a step may be an index. None takes the field out."""
    copied = copy.deepcopy(document)
    found: Any = copied
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        found = found[step] if isinstance(step, int) else found.setdefault(str(step), {})
    if value is None:
        del found[last]
    else:
        found[last] = value
    return copied


def test_the_packaged_balloon_is_allowed_and_restricted(balloon: dict[str, Any]) -> None:
    check_balloon(PLANNED.ref, PLANNED.manifest or {}, balloon)
    assert breaches(balloon["spec"]["template"]["spec"]) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("apiVersion", "extensions/v1beta1"),
        ("kind", "DaemonSet"),
        ("metadata/name", "kube-proxy"),
        ("metadata/namespace", "kube-system"),
        ("metadata/finalizers", ["example.com/never"]),
        ("metadata/ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]),
        ("metadata/annotations/headroom.dev~ssa", "Override"),
        ("metadata/labels/applyset.kubernetes.io~part-of", "another"),
        ("spec/replicas", 1000),
        ("spec/paused", True),
        ("spec/selector/matchLabels/app", "web"),
        ("spec/template/metadata/labels/app", "web"),
        ("spec/template/metadata/annotations/vault.hashicorp.com~agent-image", "evil"),
        ("spec/template/metadata/annotations/container.apparmor.security.beta.kubernetes.io~balloon", "unconfined"),
        ("spec/template/spec/hostPID", True),
        ("spec/template/spec/hostNetwork", True),
        ("spec/template/spec/hostIPC", 1),
        ("spec/template/spec/hostUsers", True),
        ("spec/template/spec/nodeName", "control-plane"),
        ("spec/template/spec/priority", 2000001000),
        ("spec/template/spec/priorityClassName", "system-node-critical"),
        ("spec/template/spec/tolerations", [{"operator": "Exists"}]),
        ("spec/template/spec/serviceAccountName", "cluster-admin"),
        ("spec/template/spec/serviceAccount", "cluster-admin"),
        ("spec/template/spec/automountServiceAccountToken", True),
        ("spec/template/spec/automountServiceAccountToken", None),
        ("spec/template/spec/volumes", [{"name": "root", "hostPath": {"path": "/"}}]),
        ("spec/template/spec/initContainers", [{"name": "a", "image": "b"}]),
        ("spec/template/spec/ephemeralContainers", [{"name": "a", "image": "b"}]),
        ("spec/template/spec/securityContext/runAsNonRoot", None),
        ("spec/template/spec/securityContext/runAsUser", 0),
        ("spec/template/spec/securityContext/runAsUser", True),
        ("spec/template/spec/securityContext/seccompProfile", {"type": "Unconfined"}),
        ("spec/template/spec/securityContext/sysctls", [{"name": "kernel.msgmax", "value": "1"}]),
        ("spec/template/spec/containers/0/image", "docker.io/evil"),
        ("spec/template/spec/containers/0/command", ["sh"]),
        ("spec/template/spec/containers/0/args", ["-c"]),
        ("spec/template/spec/containers/0/env", [{"name": "A", "value": "b"}]),
        ("spec/template/spec/containers/0/lifecycle", {"postStart": {"exec": {"command": ["sh"]}}}),
        ("spec/template/spec/containers/0/resources/requests", {"cpu": "2"}),
        ("spec/template/spec/containers/0/resources/requests/cpu", "1m"),
        ("spec/template/spec/containers/0/volumeMounts", [{"name": "root", "mountPath": "/host"}]),
        ("spec/template/spec/containers/0/securityContext/privileged", True),
        ("spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation", True),
        ("spec/template/spec/containers/0/securityContext/capabilities/add", ["SYS_ADMIN"]),
        ("spec/template/spec/containers/0/securityContext/capabilities/drop", ["CHOWN"]),
        ("spec/template/spec/containers/0/securityContext/runAsNonRoot", False),
        ("spec/template/spec/containers/0/securityContext/procMount", "Unmasked"),
        ("spec/template/spec/containers/0/securityContext/seccompProfile", {"type": "Localhost", "localhostProfile": "a"}),
    ],
)  # fmt: skip
def test_what_a_balloon_may_not_be(balloon: dict[str, Any], path: str, value: object) -> None:
    written = put(balloon, path, value) if "~" not in path else _marked(balloon, path, value)
    with pytest.raises(Invalid) as refused:
        check_balloon(PLANNED.ref, PLANNED.manifest or {}, written)
    named = refused.value.message
    assert any(step.replace("~", "/") in named for step in path.split("/")[-2:]), named
    assert refused.value.hint


def _marked(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    *steps, name = path.split("/")
    return put(document, "/".join(steps), {**_at(document, steps), name.replace("~", "/"): value})


def _at(document: Any, steps: list[str]) -> dict[str, Any]:
    for step in steps:
        document = document.get(step, {})
    return dict(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/labels/team", "shop"),
        ("metadata/annotations/example.com~owner", "shop"),
        ("spec/strategy", {"type": "Recreate"}),
        ("spec/revisionHistoryLimit", 0),
        ("spec/template/metadata/labels/sidecar.istio.io~inject", "false"),
        ("spec/template/metadata/annotations/linkerd.io~inject", "disabled"),
        ("spec/template/spec/serviceAccountName", "default"),
        ("spec/template/spec/hostPID", False),
        ("spec/template/spec/imagePullSecrets", [{"name": "mirror"}]),
        ("spec/template/spec/containers/0/imagePullPolicy", "Always"),
        ("spec/template/spec/containers/0/resources/limits", {"cpu": "1"}),
        ("spec/template/spec/containers/0/resources/requests/cpu", "1000m"),
        ("spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem", None),
    ],
)
def test_what_a_template_may_add_to_a_balloon(balloon: dict[str, Any], path: str, value: object) -> None:
    written = put(balloon, path, value) if "~" not in path else _marked(balloon, path, value)
    check_balloon(PLANNED.ref, PLANNED.manifest or {}, written)


def test_a_generated_balloon_that_is_allowed_is_restricted(balloon: dict[str, Any]) -> None:
    """Fields of pods put in, changed and taken out at random; the standard is written down a second time, in the test."""
    allowed = 0
    for seed in range(SCENARIOS):
        written = mutated_balloon(balloon, random.Random(seed))
        try:
            check_balloon(PLANNED.ref, PLANNED.manifest or {}, written)
        except Invalid:
            continue
        allowed += 1
        assert breaches(written["spec"]["template"]["spec"]) == [], seed
    assert allowed > SCENARIOS // 50, "the generator makes some that are allowed"


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease"])
def test_no_balloon_is_made_where_the_cluster_itself_lives(balloon: dict[str, Any], namespace: str) -> None:
    there = put(balloon, "metadata/namespace", namespace)
    planned = put(dict(PLANNED.manifest or {}), "metadata/namespace", namespace)
    ref = PLANNED.ref.__class__("apps", "Deployment", namespace, PLANNED.ref.name)
    with pytest.raises(Invalid, match=f"no balloon pods are made in namespace {namespace}"):
        check_balloon(ref, planned, there)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/name", "other"),
        ("metadata/finalizers", ["example.com/never"]),
        ("metadata/ownerReferences", None),
        ("metadata/ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]),
        ("metadata/labels/karpenter.sh~nodepool", "other"),
        ("metadata/labels/node-role.kubernetes.io~control-plane", ""),
        ("metadata/annotations/karpenter.sh~nodepool-hash", "1"),
        ("spec/nodeClassRef", {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "admin"}),
        ("spec/nodeClassRef", None),
        ("spec/requirements", []),
        ("spec/requirements/0/values", ["arm64"]),
        ("spec/resources/requests/cpu", "64"),
        ("spec/taints", None),
        ("spec/unknown", 1),
        ("status", {"providerID": "aws:///i-1"}),
    ],
)
def test_what_a_node_claim_may_not_be(claim: dict[str, Any], path: str, value: object) -> None:
    written = put(claim, path, value) if "~" not in path else _marked(claim, path, value)
    if "control-plane" in path:
        written["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = "x"
    with pytest.raises(Invalid):
        check_node_claim(node_claim_ref(CREATION.name), node_claim_context(CREATION, POOL), written)


def test_a_node_claim_may_have_more_labels_requirements_and_taints(claim: dict[str, Any]) -> None:
    written = put(claim, "metadata/labels/team", "shop")
    written["spec"]["requirements"].insert(0, {"key": "example.com/rack", "operator": "Exists"})
    written["spec"]["taints"].append({"key": "example.com/new", "effect": "NoSchedule"})
    check_node_claim(node_claim_ref(CREATION.name), node_claim_context(CREATION, POOL), written)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "CapacityBuffer"),
        ("metadata/name", "other"),
        ("metadata/namespace", "shop"),
        ("metadata/finalizers", ["example.com/never"]),
        ("metadata/annotations/headroom.dev~ssa", "Override"),
        ("spec/template/spec/nodeClassRef/name", "admin"),
        ("spec/limits", None),
    ],
)
def test_what_a_node_pool_may_not_be(path: str, value: object) -> None:
    change = representative_changes()[0]
    declared = dict(change.manifest or {})
    check_node_pool(change.ref, declared, put(declared, "spec/template/metadata", {"labels": {"team": "shop"}}))
    with pytest.raises(Invalid):
        check_node_pool(
            change.ref, declared, put(declared, path, value) if "~" not in path else _marked(declared, path, value)
        )
