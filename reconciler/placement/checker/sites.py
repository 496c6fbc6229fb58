"""Sites: every node there is, on its way or planned, with who is on it. Used by the whole checker.

A site's labels say what it is; `OPEN` stands for a label whose value is not decided yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INITIALIZED_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    Node,
    NodeClaim,
    Offering,
)
from reconciler.model.pods import HostPort, NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement, Taint

OPEN = "\0open"
OLDER_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.ebs.csi.aws.com/zone": "topology.kubernetes.io/zone",
    "topology.disk.csi.azure.com/zone": "topology.kubernetes.io/zone",
    "topology.gke.io/zone": "topology.kubernetes.io/zone",
}


@dataclass(frozen=True, slots=True)
class Tenant:
    """Somebody on a site: a bound pod (chunk False) or chunks of a demand, `count` of them alike. pending: they are pending pods;
    waits: for which no node is made, so that they are bound before any comes."""

    shape: PodShape
    count: int
    chunk: bool
    pending: bool = False
    waits: bool = False
    keeps_minimum: bool = False
    leaving: bool = False


@dataclass(slots=True)
class Site:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    exists: bool = True
    planned: bool = False
    options: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    """What open labels may come to be, None where they may never come."""
    tenants: list[Tenant] = field(default_factory=list)

    def possible(self, key: str) -> list[str]:
        """The values that an open label may come to have, sorted."""
        return sorted(value for value in self.options.get(key, ()) if value is not None)


def label_of(site: Site, key: str) -> str | None:
    """As written; where a node is still to be made the older spellings are read as the stable ones."""
    if key in site.labels or site.exists:
        return site.labels.get(key)
    return site.labels.get(stable_label(key))


def stable_label(key: str) -> str:
    return OLDER_LABELS.get(key, key)


def in_common(variants: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], dict[str, frozenset[str | None]]]:
    """Labels, open where variants differ, and all that each may come to be."""
    keys = sorted({key for variant in variants for key in variant})
    seen = {key: frozenset(variant.get(key) for variant in variants) for key in keys}
    return {key: next(iter(seen[key])) or "" if len(seen[key]) == 1 else OPEN for key in keys}, seen


def labels_as_offered(offering: Offering) -> dict[str, str]:
    """What a node of this offering will be labelled, whatever its type."""
    single = {item.key: item.values[0] for item in offering.requirements if len(item.values) == 1}
    return single | {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type}


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether a label value (None: no label) meets a node selector requirement."""
    listed = requirement.values
    match requirement.operator:
        case Operator.IN:
            return value is not None and value in listed
        case Operator.NOT_IN:
            return value is None or value not in listed
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
    try:
        number, bound = int(value or ""), int(listed[0])
    except (ValueError, IndexError):
        return False
    return {
        Operator.GT: number > bound,
        Operator.GTE: number >= bound,
        Operator.LT: number < bound,
        Operator.LTE: number <= bound,
    }[requirement.operator]


def accepts(site: Site, shape: PodShape) -> bool:
    """Whether selector and required node affinity accept the site, whatever its open labels come to be."""
    if any(label_of(site, key) != value for key, value in shape.node_selector):
        return False
    return not shape.required_node_terms or any(term_holds(site, term) for term in shape.required_node_terms)


def term_holds(site: Site, term: NodeSelectorTerm) -> bool:
    """Whether the site meets a term, whatever its open labels come to be; one that says nothing is met by no node."""
    if not term.expressions and not term.fields:
        return False
    labels = all(surely_holds(site, item) for item in term.expressions)
    return labels and all(holds(item, site.name if site.exists else None) for item in term.fields)


def surely_holds(site: Site, requirement: Requirement) -> bool:
    value = label_of(site, requirement.key)
    if value != OPEN:
        return holds(requirement, value)
    options = _options(site, requirement.key)
    return bool(options) and all(holds(requirement, option) for option in options)


def may_accept(site: Site, shape: PodShape) -> bool:
    """Whether selector and required node affinity accept the site if its open labels come to be what suits them."""
    selector = [Requirement(key, Operator.IN, (value,)) for key, value in shape.node_selector]
    terms = [term.expressions for term in shape.required_node_terms if term.expressions or term.fields]
    return all(_may_hold(site, item) for item in selector) and (
        not shape.required_node_terms or any(all(_may_hold(site, item) for item in term) for term in terms)
    )


def _may_hold(site: Site, requirement: Requirement) -> bool:
    value = label_of(site, requirement.key)
    if value != OPEN:
        return holds(requirement, value)
    options = _options(site, requirement.key)
    return not options or any(holds(requirement, option) for option in options)


def _options(site: Site, key: str) -> frozenset[str | None]:
    return site.options.get(key if key in site.options else OLDER_LABELS.get(key, key), frozenset())


def is_initialized(node: Node, claim: NodeClaim | None) -> bool:
    """What Karpenter did not make is initialized from the start."""
    managed = claim is not None or node.label(NODEPOOL_LABEL) is not None
    claimed = claim is not None and claim.condition("Initialized") == "True"
    return not managed or node.label(INITIALIZED_LABEL) == "true" or claimed


def untolerated(taints: Iterable[Taint], shape: PodShape) -> list[Taint]:
    return [
        taint
        for taint in taints
        if taint.effect in {"NoSchedule", "NoExecute"}
        and not any(toleration.tolerates(taint) for toleration in shape.tolerations)
    ]


def clashing_ports(tenants: Sequence[Tenant]) -> list[int]:
    """Host ports that chunks want and some other pod of the site too."""
    asking = [tenant for tenant in tenants if tenant.shape.host_ports]
    clashes = [port.port for tenant in asking if tenant.count > 1 for port in tenant.shape.host_ports]
    for one, other in combinations(asking, 2):
        if one.chunk or other.chunk:
            clashes += [
                port.port
                for port in one.shape.host_ports
                if any(_same(port, taken) for taken in other.shape.host_ports)
            ]
    return clashes


def _same(port: HostPort, other: HostPort) -> bool:
    anywhere = {port.address, other.address} & {"", "0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    same = (port.port, port.protocol) == (other.port, other.protocol)
    return same and (bool(anywhere) or port.address == other.address)
