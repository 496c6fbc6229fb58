"""Objects that every template must be able to render, and those of two revisions side by side.

A repository's templates are rendered with these before they are merged, when no real object uses them yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta

from reconciler.model.changes import Action, NodeClaimCreation, ObjectChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.nodes import NodeClaimTemplate, NodeClassRef, NodePool
from reconciler.model.placement import Holding, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import Manifest
from reconciler.render.templates import DocumentTemplates
from reconciler.render.writes import ReadDocument, balloon_document, node_claim_document, node_pool_document

_NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
_ARCHITECTURE = Requirement("kubernetes.io/arch", Operator.IN, ("amd64", "arm64"))
_GENERATION = Requirement("karpenter.k8s.aws/instance-generation", Operator.GT, ("5",))
_FAMILY = Requirement("karpenter.k8s.aws/instance-family", Operator.EXISTS, (), 2)
_REQUESTS = Resources.parse({"cpu": "1500m", "memory": "3Gi", "pods": "4"})
_BUFFER = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")


def representative_creations() -> tuple[tuple[NodeClaimCreation, NodePool], ...]:
    """Placeholders with their NodePools."""
    full = NodeClaimTemplate(
        labels=(("team", "shop"),),
        annotations=(("example.com/note", 'quotes " and\nlines'),),
        requirements=(_ARCHITECTURE, _GENERATION, _FAMILY),
        taints=(Taint("dedicated", "shop", "NoSchedule"), Taint("gpu", "", "NoExecute")),
        startup_taints=(Taint("example.com/agent", "", "NoSchedule"),),
        node_class=_NODE_CLASS,
        expire_after=timedelta(hours=720),
        termination_grace_period=timedelta(minutes=30),
    )
    bare = NodeClaimTemplate(node_class=_NODE_CLASS, expire_after=None)
    return (
        (_creation("general", full), NodePool("general", full, uid="3f0c", hash="1234567", hash_version="v3")),
        (_creation("bare", bare), NodePool("bare", bare)),
    )


def _creation(pool: str, template: NodeClaimTemplate) -> NodeClaimCreation:
    planned = PlannedNode(
        node_pool=pool,
        instance_types=("m7i.large", "m7a.large"),
        zones=("eu-west-1a", "eu-west-1b"),
        capacity_types=("spot", "on-demand"),
        price=0.1,
        requests=_REQUESTS,
        requirements=template.requirements,
        holdings=(Holding(_BUFFER, 0, 2), Holding(_BUFFER, 1, 1)),
    )
    return NodeClaimCreation(f"{pool}-h4d8x", planned, "made to hold chunks")


def representative_changes() -> tuple[ObjectChange, ...]:
    """NodePools as declared: a whole one, and a part of one that is in the cluster."""
    whole: Manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general", "labels": {"team": "shop"}, "annotations": {"example.com/note": "x"}},
        "spec": {
            "weight": 10,
            "limits": {"cpu": "100"},
            "disruption": {"consolidateAfter": "1m", "budgets": [{"nodes": "10%"}]},
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
                }
            },
        },
    }
    part: Manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "part"},
        "spec": {"disruption": {"budgets": [{"nodes": "0"}]}},
    }
    return tuple(
        ObjectChange(ObjectRef("karpenter.sh", "NodePool", "", manifest["metadata"]["name"]), action, manifest=manifest)
        for manifest in (whole, part)
        for action in (Action.CREATE, Action.UPDATE)
    )


def representative_balloons() -> tuple[ObjectChange, ...]:
    """Deployments of balloon pods: one with everything that a pod may have, and one with requests only."""
    full = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "containers": [
            {
                "name": "balloon",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
            }
        ],
        "priorityClassName": "headroom-balloon",
    }
    bare = {"containers": [{"name": "balloon", "image": "pause", "resources": {"requests": {}}}]}
    return tuple(_balloon(name, pod) for name, pod in (("full", full), ("bare", bare)))


def _balloon(name: str, pod: Manifest) -> ObjectChange:
    ref = ObjectRef("apps", "Deployment", "shop", f"balloon-capacitybuffer-{name}")
    labels = {"headroom.dev/balloon": ref.name}
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": ref.name, "namespace": ref.namespace, "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    return ObjectChange(ref, Action.CREATE, manifest=manifest)


ANY_NODE_CLAIM = ObjectRef("karpenter.sh", "NodeClaim", "", "every placeholder")
"""Stands for all placeholders, which are rendered from one template."""
ANY_BALLOON = ObjectRef("apps", "Deployment", "", "every balloon")


def rendered_pairs(
    before: DocumentTemplates,
    after: DocumentTemplates,
    manifests: Iterable[DeclaredManifest],
    read_document: ReadDocument,
) -> Iterator[tuple[ObjectRef, Manifest, Manifest]]:
    """NodePools of both revisions, a placeholder and balloon pods, as each side renders them. What cannot be rendered is already a finding."""
    if before.own == after.own:
        return
    creation, pool = representative_creations()[0]
    (balloon, _) = representative_balloons()
    with suppress(Invalid):
        yield (
            ANY_BALLOON,
            balloon_document(before, balloon, read_document),
            balloon_document(after, balloon, read_document),
        )
    with suppress(Invalid):
        yield (
            ANY_NODE_CLAIM,
            node_claim_document(before, creation, pool, read_document),
            node_claim_document(after, creation, pool, read_document),
        )
    for item in manifests:
        if item.ref.kind != "NodePool":
            continue
        change = ObjectChange(item.ref, Action.UPDATE, manifest=item.manifest)
        with suppress(Invalid):
            yield (
                item.ref,
                node_pool_document(before, change, read_document),
                node_pool_document(after, change, read_document),
            )
