"""Pods whose annotations ask for the capacity of a ProvisioningRequest in vain. Without a finding nobody would notice: such a pod runs or
waits like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from reconciler.demand import codes
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.findings import Code, Finding
from reconciler.model.pods import FINISHED_PHASES, Pod
from reconciler.model.provisioning_requests import CLASS_ANNOTATIONS, CONSUME_ANNOTATIONS, ProvisioningRequest
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.view import ClusterView

_Key = tuple[str, str]
_MOST_NAMES = 3
"""How many other requests of the namespace a hint names."""
_LOOKED_AT = frozenset({*CONSUME_ANNOTATIONS, *CLASS_ANNOTATIONS})


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is wrong with a pod, in words that are the same for all pods of its owner."""

    namespace: str
    owner: str
    code: Code
    message: str
    hint: str


def consumer_findings(requests: Iterable[ProvisioningRequest], view: ClusterView) -> tuple[Finding, ...]:
    """One finding for all pods of an owner, about the first by name. requests: of every class, in Git or in the cluster."""
    pods_by_problem: dict[_Problem, list[str]] = {}
    classes: dict[_Key, str] | None = None
    for pod in view.pods:
        if not pod.annotations or pod.deleting or pod.phase in FINISHED_PHASES:
            continue
        if not any(name in _LOOKED_AT for name, _ in pod.annotations):
            continue
        if classes is None:
            classes = {(item.ref.namespace, item.ref.name): item.class_name for item in requests}
        problem = _problem(pod, classes, complete=view.complete)
        if problem is not None:
            pods_by_problem.setdefault(problem, []).append(pod.name)
    return tuple(_finding(problem, sorted(names)) for problem, names in pods_by_problem.items())


def _problem(pod: Pod, classes: dict[_Key, str], *, complete: bool) -> _Problem | None:
    annotations = dict(pod.annotations)
    consume = next((name for name in CONSUME_ANNOTATIONS if annotations.get(name)), "")
    given = next((name for name in CLASS_ANNOTATIONS if annotations.get(name)), "")
    owner = f"{pod.owner_kind}/{pod.owner_name}" if pod.owner_name else f"{POD_KIND}/{pod.name}"
    if not consume and not given:
        return None
    if not consume:
        message = f"{given} has no effect without {CONSUME_ANNOTATIONS[0]}"
        hint = f"add {CONSUME_ANNOTATIONS[0]}: NAME to the pod's template"
        return _Problem(pod.namespace, owner, codes.HALF_CONSUMPTION, message, hint)
    name = annotations[consume]
    class_name = classes.get((pod.namespace, name))
    request = f"{REQUEST_KIND}/{pod.namespace}/{name}"
    if class_name is None and complete and _waits(pod):
        message = f"{consume} names {request}, which does not exist"
        hint = f"correct the name{_others(pod.namespace, classes)}, or create the request"
        return _Problem(pod.namespace, owner, codes.REQUEST_NOT_FOUND, message, hint)
    if not given:
        message = f"{consume} names {request} without {CLASS_ANNOTATIONS[0]} beside it: both are required"
        hint = f"add {CLASS_ANNOTATIONS[0]}: {class_name or 'CLASS'} to the pod's template"
        return _Problem(pod.namespace, owner, codes.HALF_CONSUMPTION, message, hint)
    return None


def _waits(pod: Pod) -> bool:
    """A pod that runs may have had its room from a request that has been collected since."""
    return pod.node_name is None and not pod.gated


def _others(namespace: str, classes: Collection[_Key]) -> str:
    names = sorted(name for place, name in classes if place == namespace)
    return f" ({namespace} has {', '.join(names[:_MOST_NAMES])})" if names else ""


def _finding(problem: _Problem, names: list[str]) -> Finding:
    ref = ObjectRef("", POD_KIND, problem.namespace, names[0])
    count = "" if len(names) == 1 else f" ({len(names):,} pods of {problem.owner})"
    return problem.code.finding(problem.message + count, None, ref, "metadata.annotations", problem.hint)
