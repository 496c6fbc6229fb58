"""Rules between pods: hard topology spread, required affinity and anti-affinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from reconciler.cluster.embedded.matching import selects, tolerates
from reconciler.model.nodes import Node
from reconciler.model.pods import Pod, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator, Requirement

HARD = "DoNotSchedule"
HONOR = "Honor"


class Neighbours:
    """Which pods are on which node, kept up to date while a round binds pods."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._namespaces = namespaces
        self._placed = [
            (pod, node)
            for pod in pods
            if not pod.deleting and (node := self._nodes.get(pod.node_name or "")) is not None
        ]
        self._repelling = [item for item in self._placed if item[0].shape.pod_anti_affinity]

    def add(self, pod: Pod, node: Node) -> None:
        self._placed.append((pod, node))
        if pod.shape.pod_anti_affinity:
            self._repelling.append((pod, node))

    def judge(self, pod: Pod) -> Callable[[Node], bool] | None:
        """A function that says whether a node is allowed for the pod now; None if no rule applies."""
        shape = pod.shape
        rules = [
            *(self._spread(shape, spread) for spread in shape.topology_spread if spread.when_unsatisfiable == HARD),
            *(self._near(shape, term) for term in shape.pod_affinity),
            *(self._away(shape, term) for term in shape.pod_anti_affinity),
            *self._repelled(shape),
        ]
        return (lambda node: all(rule(node) for rule in rules)) if rules else None

    def _spread(self, shape: PodShape, spread: TopologySpread) -> Callable[[Node], bool]:
        """No domain may exceed the one with the fewest matching pods by more than max_skew."""
        selector = _narrowed(spread.selector, spread.match_label_keys, (), shape)
        eligible = [
            node
            for node in self._nodes.values()
            if node.label(spread.topology_key) is not None
            and (spread.node_affinity_policy != HONOR or selects(shape, dict(node.labels), node.name))
            and (spread.node_taints_policy != HONOR or tolerates(shape, node.taints))
        ]
        names = {node.name for node in eligible}
        counts = Counter(dict.fromkeys((node.label(spread.topology_key) or "" for node in eligible), 0))
        counts.update(
            node.label(spread.topology_key) or ""
            for pod, node in self._placed
            if node.name in names and pod.shape.namespace == shape.namespace and _matches(selector, pod.shape)
        )
        fewest = 0 if len(counts) < (spread.min_domains or 1) else min(counts.values(), default=0)
        own = int(_matches(selector, shape))

        def allowed(node: Node) -> bool:
            domain = node.label(spread.topology_key)
            return domain is not None and counts[domain] + own - fewest <= spread.max_skew

        return allowed

    def _near(self, shape: PodShape, term: PodAffinityTerm) -> Callable[[Node], bool]:
        """The domain must have a matching pod. The first of its kind may go anywhere with the topology key."""
        domains = self._domains(shape, term)
        first = not domains and self._selected(shape, term, shape)
        return lambda node: (
            node.label(term.topology_key) is not None and (first or node.label(term.topology_key) in domains)
        )

    def _away(self, shape: PodShape, term: PodAffinityTerm) -> Callable[[Node], bool]:
        domains = self._domains(shape, term)
        return lambda node: node.label(term.topology_key) not in domains

    def _repelled(self, shape: PodShape) -> Iterable[Callable[[Node], bool]]:
        """Existing pods' anti-affinity to this one."""
        taken = {
            (term.topology_key, node.label(term.topology_key))
            for pod, node in self._repelling
            for term in pod.shape.pod_anti_affinity
            if self._selected(pod.shape, term, shape)
        }
        if taken:
            yield lambda node: not any(node.label(key) == value is not None for key, value in taken)

    def _domains(self, shape: PodShape, term: PodAffinityTerm) -> set[str]:
        return {
            domain
            for pod, node in self._placed
            if (domain := node.label(term.topology_key)) is not None and self._selected(shape, term, pod.shape)
        }

    def _selected(self, shape: PodShape, term: PodAffinityTerm, other: PodShape) -> bool:
        """Whether the term of `shape` selects `other`."""
        selector = _narrowed(term.selector, term.match_label_keys, term.mismatch_label_keys, shape)
        if not _matches(selector, other):
            return False
        if term.namespace_selector is not None:
            labels = self._namespaces.get(other.namespace, {})
            return other.namespace in term.namespaces or term.namespace_selector.matches(labels)
        return other.namespace in (term.namespaces or (shape.namespace,))


def _matches(selector: LabelSelector | None, shape: PodShape) -> bool:
    return selector is not None and selector.matches(dict(shape.labels))


def _narrowed(
    selector: LabelSelector | None, match: Iterable[str], mismatch: Iterable[str], shape: PodShape
) -> LabelSelector | None:
    """The selector with matchLabelKeys and mismatchLabelKeys, which refer to the pod's own labels."""
    if selector is None:
        return None
    labels = dict(shape.labels)
    more = [
        *(Requirement(key, Operator.IN, (labels[key],)) for key in match if key in labels),
        *(Requirement(key, Operator.NOT_IN, (labels[key],)) for key in mismatch if key in labels),
    ]
    return LabelSelector(selector.match_labels, (*selector.expressions, *more)) if more else selector
