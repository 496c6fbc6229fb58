"""Finds errors in a repository's templates by rendering them, so that a pull request shows them: with made-up objects too, since no real
object may use a template yet. And what the objects of two revisions' templates are, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from reconciler.model import codes
from reconciler.model.changes import Action, NodeClaimCreation, ObjectChange, Plan
from reconciler.model.declared import DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodeClaimTemplate, NodeClassRef, NodePool, node_claim_ref, node_pool_ref
from reconciler.model.placement import Holding, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import Manifest
from reconciler.render.templates import SUFFIX, DocumentTemplates, RenderProcess, TemplateFailed, TemplateSource
from reconciler.render.writes import (
    NODE_CLAIM_TEMPLATE,
    NODE_POOL_TEMPLATE,
    node_claim_document,
    node_pool_document,
)

RENDERED = (NODE_CLAIM_TEMPLATE, NODE_POOL_TEMPLATE)


def findings_of_files(
    files: Mapping[str, bytes],
    packaged: Mapping[str, str],
    manifests: Iterable[DeclaredManifest],
) -> tuple[Finding, ...]:
    """Findings for files without settings. Templates come from every folder called `templates`, and are rendered with the
    NodePools declared next to it or below."""
    declared = [manifest for manifest in manifests if manifest.ref.kind == "NodePool"]
    process = RenderProcess()
    findings: list[Finding] = []
    paths = sorted(path for path in files if path.endswith(SUFFIX))
    folders = sorted({folder for path in paths if (folder := _templates_folder(path)) is not None})
    try:
        for folder in folders:
            inside = {path: files[path] for path in paths if _templates_folder(path) == folder}
            templates = TemplateSource(packaged, folder, process=process).of(inside)
            beside = folder.removesuffix("templates")
            changes = [
                ObjectChange(manifest.ref, Action.CREATE, manifest=manifest.manifest)
                for manifest in declared
                if manifest.position.file.startswith(beside)
            ]
            findings += checked_templates(templates, changes=changes).findings
    finally:
        process.close()
    strays = [path for path in paths if _templates_folder(path) is None]
    return (*findings, *(_stray(path, "templates") for path in strays))


def _templates_folder(path: str) -> str | None:
    """The outermost folder called `templates` that contains the path."""
    parts = path.split("/")[:-1]
    return "/".join(parts[: parts.index("templates") + 1]) if "templates" in parts else None


@dataclass(frozen=True, slots=True)
class CheckedTemplates:
    """Findings about a repository's templates. unrendered: those of the given objects that cannot be rendered."""

    findings: tuple[Finding, ...] = ()
    unrendered: Mapping[ObjectRef, Invalid] = field(default_factory=dict)


def checked_for_plan(plan: Plan, templates: DocumentTemplates, node_pools: Iterable[NodePool]) -> CheckedTemplates:
    """Findings from rendering the plan's objects too."""
    pools = {pool.name: pool for pool in node_pools}
    return checked_templates(
        templates,
        creations=[(creation, pools[creation.planned.node_pool]) for creation in plan.node_claims.create],
        changes=[
            change for change in plan.objects if change.ref.kind == "NodePool" and change.action is not Action.DELETE
        ],
    )


def checked_templates(
    templates: DocumentTemplates,
    *,
    creations: Iterable[tuple[NodeClaimCreation, NodePool]] = (),
    changes: Iterable[ObjectChange] = (),
) -> CheckedTemplates:
    """Findings from rendering representative objects and the given creations and changes, one for each place."""
    strays = tuple(_stray(path, templates.folder) for path in templates.strays)
    if not templates.own:
        return CheckedTemplates(strays)
    failures: list[tuple[Invalid, str]] = []
    unrendered: dict[ObjectRef, Invalid] = {}
    for name, ref, render in _renderings(templates, creations, changes):
        try:
            render()
        except Invalid as failure:
            failures.append((failure, name))
            if ref is not None:
                unrendered[ref] = failure
    findings = {finding.position: finding for finding in reversed([_finding(templates, *item) for item in failures])}
    unused = [
        _unused(templates, name)
        for name in templates.own
        if name not in RENDERED and not any(name in text for text in templates.own.values())
    ]
    ordered = sorted((*findings.values(), *unused, *strays), key=lambda finding: finding.sort_key)
    return CheckedTemplates(tuple(ordered), unrendered)


def _renderings(
    templates: DocumentTemplates,
    creations: Iterable[tuple[NodeClaimCreation, NodePool]],
    changes: Iterable[ObjectChange],
) -> Iterator[tuple[str, ObjectRef | None, Callable[[], Manifest]]]:
    """Renderings by templates of the repository alone. The object is None for a representative one."""
    claims: list[tuple[ObjectRef | None, NodeClaimCreation, NodePool]]
    claims = [(None, *example) for example in representative_creations()]
    claims += [(node_claim_ref(creation.name), creation, pool) for creation, pool in creations]
    pools: list[tuple[ObjectRef | None, ObjectChange]] = [(None, example) for example in representative_changes()]
    pools += [(change.ref, change) for change in changes if change.ref.kind == "NodePool"]
    if NODE_CLAIM_TEMPLATE in templates.own:
        for ref, creation, pool in claims:
            yield NODE_CLAIM_TEMPLATE, ref, partial(node_claim_document, templates, creation, pool)
    if NODE_POOL_TEMPLATE in templates.own:
        for ref, change in pools:
            yield NODE_POOL_TEMPLATE, ref, partial(node_pool_document, templates, change)


def _finding(templates: DocumentTemplates, failure: Invalid, name: str) -> Finding:
    position = failure.position if isinstance(failure, TemplateFailed) else templates.position(name)
    return codes.TEMPLATE_FAILED.finding(failure.message, position=position, hint=failure.hint)


def _stray(path: str, folder: str) -> Finding:
    return codes.TEMPLATE_NOT_USED.finding(
        f"no document is rendered from {path}, which is outside of the folder {folder!r}",
        position=SourcePosition(path, 1),
        hint="move it there, or name its folder with the setting templates",
    )


def _unused(templates: DocumentTemplates, name: str) -> Finding:
    return codes.TEMPLATE_NOT_USED.finding(
        f"no document is rendered from template {name}, and no other template names it",
        position=templates.position(name),
        hint=f"headroom renders {' and '.join(RENDERED)}, and what these include",
    )


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
        ObjectChange(node_pool_ref(manifest["metadata"]["name"]), action, manifest=manifest)
        for manifest in (whole, part)
        for action in (Action.CREATE, Action.UPDATE)
    )


ANY_NODE_CLAIM = node_claim_ref("every placeholder")
"""Stands for all placeholders, which are rendered from one template."""


def rendered_pairs(
    before: DocumentTemplates,
    after: DocumentTemplates,
    manifests: Iterable[DeclaredManifest],
) -> Iterator[tuple[ObjectRef, Manifest, Manifest]]:
    """NodePools of both revisions, and a placeholder, as each side renders them. What cannot be rendered is already a finding."""
    if before.own == after.own:
        return
    creation, pool = representative_creations()[0]
    renderings: list[tuple[ObjectRef, Callable[[DocumentTemplates], Manifest]]] = [
        (ANY_NODE_CLAIM, lambda templates: node_claim_document(templates, creation, pool)),
    ]
    for item in manifests:
        if item.ref.kind == "NodePool":
            change = ObjectChange(item.ref, Action.UPDATE, manifest=item.manifest)
            renderings.append((item.ref, partial(node_pool_document, change=change)))
    for ref, render in renderings:
        with suppress(Invalid):
            yield ref, render(before), render(after)
