"""From a PodSpec to the pod shape that placement works with.

Requests follow Kubernetes' own computation (k8s.io/component-helpers, resource/helpers.go). For each resource the larger of two
sums counts. One is all app containers and restartable init containers (sidecars, KEP-753). The other is the largest init container
with the sidecars started before it. Pod-level resources (KEP-2837) replace that, and overhead (KEP-688) is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from reconciler.manifests.pods.pod_spec_wire import (
    AffinityWire,
    ContainerWire,
    LabelSelectorWire,
    NodeSelectorTermWire,
    PodAffinityTermWire,
    PodAffinityWire,
    PodSpecWire,
    Quantities,
    ResourcesWire,
    SelectorRequirementWire,
    TolerationWire,
    TopologySpreadWire,
)
from reconciler.model.errors import Invalid
from reconciler.model.pods import (
    DEFAULT_SCHEDULER,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodShape,
    PreferredNodeTerm,
    TopologySpread,
    WeightedPodAffinityTerm,
)
from reconciler.model.quantity import PODS, Resources, amount_of, parse_quantity
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration

W = TypeVar("W")
ALWAYS = "Always"
_OPERATORS = {operator.value: operator for operator in Operator}
_COMPARISONS = frozenset({Operator.GT, Operator.LT, Operator.GTE, Operator.LTE})
_MOST_DIGITS = 20
"""Characters of a 64-bit integer with its sign."""
_POD_LEVEL = frozenset({"cpu", "memory"})
_HUGE_PAGES = "hugepages-"
_ANY_ADDRESS = HostPort(port=0).address


def converted(value: Any, kind: type[W], place: str) -> W:
    """Plain YAML or JSON values in their wire format. place: the path of the value. Raises `Invalid`, which names the path of what is wrong."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise Invalid(f"{what[:1].lower()}{what[1:]} at {place}{path.rstrip('`')}") from error


def pod_spec_from(mapping: Mapping[str, Any]) -> PodSpecWire:
    """A PodSpec from plain values. Raises `Invalid`."""
    return converted(mapping, PodSpecWire, "spec")


def shape_of(spec: PodSpecWire, *, namespace: str, labels: Mapping[str, str], pod_name: str = "") -> PodShape:
    """The shape of a pod with this spec. Raises `Invalid` on a malformed or negative quantity or an unknown operator.

    pod_name: of a real pod; its ephemeral volumes' claims are named after it. "" for a template, whose ephemeral volumes are
    ignored.
    """
    required, preferred = _node_affinity(spec.affinity)
    affinity = spec.affinity or AffinityWire()
    near, near_preferred = _pod_affinity(affinity.pod_affinity)
    away, away_preferred = _pod_affinity(affinity.pod_anti_affinity)
    return PodShape(
        namespace=namespace,
        requests=requests_of(spec),
        labels=tuple(sorted(labels.items())) if labels else (),
        node_selector=tuple(sorted(spec.node_selector.items())) if spec.node_selector else (),
        required_node_terms=required,
        preferred_node_terms=preferred,
        tolerations=tuple(toleration_of(toleration) for toleration in spec.tolerations or ()),
        topology_spread=tuple(_spread(constraint) for constraint in spec.topology_spread_constraints or ()),
        pod_affinity=near,
        pod_anti_affinity=away,
        preferred_pod_affinity=near_preferred,
        preferred_pod_anti_affinity=away_preferred,
        host_ports=_host_ports(spec),
        volume_claims=_volume_claims(spec, pod_name),
        claims_devices=bool(spec.resource_claims),
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        priority_class_name=spec.priority_class_name or "",
        # Admission writes the class's overhead into a pod. Without overhead, the class still has to be applied.
        runtime_class="" if spec.overhead else spec.runtime_class_name or "",
    )


def _node_affinity(affinity: AffinityWire | None) -> tuple[tuple[NodeSelectorTerm, ...], tuple[PreferredNodeTerm, ...]]:
    """The required terms, and the preferred ones."""
    if affinity is None or affinity.node_affinity is None:
        return (), ()
    required, preferred = affinity.node_affinity.required, affinity.node_affinity.preferred
    terms = () if required is None else required.node_selector_terms or ()
    return (
        tuple(node_term_of(term) for term in terms),
        tuple(PreferredNodeTerm(term.weight, node_term_of(term.preference)) for term in preferred or ()),
    )


def requests_of(spec: PodSpecWire) -> Resources:
    """What kube-scheduler counts for one pod, including `pods: 1`. Raises `Invalid` naming the container."""
    running: dict[str, int] = {}
    for container in spec.containers or ():
        _add(running, _container_requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        requests = _container_requests(container)
        if container.restart_policy == ALWAYS:
            _add(running, requests)
            _add(sidecars, requests)
        else:
            _add(requests, sidecars)
            _raise_to(peak, requests)
    _raise_to(running, peak)
    if spec.resources is not None:
        _replace_by_pod_level(running, spec.resources)
    if spec.overhead:
        _add(running, _amounts(spec.overhead, "overhead"))
    running[PODS] = 1
    return Resources.of(running)


def _container_requests(container: ContainerWire) -> dict[str, int]:
    resources = container.resources
    if resources is None:
        return {}
    place = f"container {container.name or '(unnamed)'}"
    requests = _amounts(resources.requests, place) if resources.requests else {}
    if resources.limits:
        # The API server writes the limit into an absent request, resource by resource (pkg/apis/core/v1/defaults.go).
        given = resources.requests or {}
        for name, amount in _amounts(resources.limits, place).items():
            if given.get(name) is None:
                requests[name] = amount
    return requests


def _replace_by_pod_level(running: dict[str, int], resources: ResourcesWire) -> None:
    """Replaces the containers' sum by a pod-level request. A pod-level limit alone counts as the request if it is of huge pages, or if
    no container requests that resource, not even 0."""
    requests = _amounts(resources.requests, "the pod") if resources.requests else {}
    running.update({name: amount for name, amount in requests.items() if _is_pod_level(name)})
    for name, amount in (_amounts(resources.limits, "the pod") if resources.limits else {}).items():
        if _is_pod_level(name) and name not in requests and (name.startswith(_HUGE_PAGES) or name not in running):
            running[name] = amount


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _amounts(quantities: Quantities, place: str) -> dict[str, int]:
    try:
        return {name: _amount(name, value) for name, value in quantities.items() if value is not None}
    except Invalid as error:
        raise Invalid(f"resources of {place}: {error.message}", hint=error.hint) from error


def _amount(name: str, value: object) -> int:
    """One amount. Raises `Invalid` below zero, which the API server refuses (Kubernetes: pkg/apis/core/v1/validation)."""
    amount = amount_of(name, value)
    # A value between -1 and 0 rounds up to 0.
    if amount <= 0 and parse_quantity(value) < 0:
        raise Invalid(f"{name} is {value}, which is negative", hint="write 0 or more, or leave it out")
    return amount


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        total[name] = max(amount, total.get(name, 0))


def requirement_of(wire: SelectorRequirementWire) -> Requirement:
    """One match expression. Raises `Invalid` on an operator that does not exist."""
    operator = _OPERATORS.get(wire.operator)
    if operator is None:
        raise Invalid(
            f"operator {wire.operator!r} of {wire.key!r} does not exist", hint=f"write one of {', '.join(_OPERATORS)}"
        )
    values = wire.values or ()
    if operator in _COMPARISONS and any(len(value) > _MOST_DIGITS for value in values):
        values = ()  # kube-scheduler cannot parse such a bound either, and then nothing matches
    return Requirement(wire.key, operator, values)


def selector_of(wire: LabelSelectorWire | None, added: Iterable[str] = ()) -> LabelSelector | None:
    """A label selector; None stays None (it matches nothing, an empty one everything). Raises `Invalid`.

    added: keys for which the API server writes expressions into a pod's selector, beside the `matchLabelKeys` that say the same."""
    if wire is None:
        return None
    return LabelSelector(
        tuple(sorted(wire.match_labels.items())) if wire.match_labels else (),
        tuple(requirement_of(item) for item in wire.match_expressions or () if item.key not in added),
    )


def node_term_of(wire: NodeSelectorTermWire) -> NodeSelectorTerm:
    """One term of a node selector. Raises `Invalid` on an operator that does not exist."""
    return NodeSelectorTerm(
        tuple(requirement_of(expression) for expression in wire.match_expressions or ()),
        tuple(requirement_of(expression) for expression in wire.match_fields or ()),
    )


@lru_cache(maxsize=1024)
def toleration_of(wire: TolerationWire) -> Toleration:
    return Toleration(wire.key or "", wire.operator or "Equal", wire.value or "", wire.effect or "")


def _spread(wire: TopologySpreadWire) -> TopologySpread:
    return TopologySpread(
        topology_key=wire.topology_key,
        max_skew=wire.max_skew,
        when_unsatisfiable=wire.when_unsatisfiable,
        selector=selector_of(wire.label_selector, wire.match_label_keys or ()),
        min_domains=wire.min_domains,
        node_affinity_policy=wire.node_affinity_policy or "Honor",
        node_taints_policy=wire.node_taints_policy or "Ignore",
        match_label_keys=wire.match_label_keys or (),
    )


def _pod_affinity(
    wire: PodAffinityWire | None,
) -> tuple[tuple[PodAffinityTerm, ...], tuple[WeightedPodAffinityTerm, ...]]:
    """The required terms, and the preferred ones."""
    if wire is None:
        return (), ()
    return (
        tuple(_affinity_term(term) for term in wire.required or ()),
        tuple(
            WeightedPodAffinityTerm(term.weight, _affinity_term(term.pod_affinity_term))
            for term in wire.preferred or ()
        ),
    )


def _affinity_term(wire: PodAffinityTermWire) -> PodAffinityTerm:
    added = (*(wire.match_label_keys or ()), *(wire.mismatch_label_keys or ()))
    return PodAffinityTerm(
        topology_key=wire.topology_key,
        selector=selector_of(wire.label_selector, added),
        namespaces=tuple(sorted(wire.namespaces or ())),
        namespace_selector=selector_of(wire.namespace_selector),
        match_label_keys=wire.match_label_keys or (),
        mismatch_label_keys=wire.mismatch_label_keys or (),
    )


def _host_ports(spec: PodSpecWire) -> tuple[HostPort, ...]:
    """The host ports of containers that keep running. On the host's network the API server makes every container port one."""
    running: Iterable[ContainerWire] = (
        *(spec.containers or ()),
        *(container for container in spec.init_containers or () if container.restart_policy == ALWAYS),
    )
    ports = {
        HostPort(number, port.protocol or "TCP", port.host_ip or _ANY_ADDRESS)
        for container in running
        for port in container.ports or ()
        if (number := port.host_port or (port.container_port if spec.host_network else 0))
    }
    return tuple(sorted(ports, key=lambda port: (port.port, port.protocol, port.address))) if ports else ()


def _volume_claims(spec: PodSpecWire, pod_name: str) -> tuple[str, ...]:
    claims: set[str] = set()
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.add(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None and pod_name:
            claims.add(f"{pod_name}-{volume.name}")
    return tuple(sorted(claims))
