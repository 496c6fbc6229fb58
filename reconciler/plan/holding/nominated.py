"""What a plan says about pods for which kube-scheduler has already chosen a node (`status.nominatedNodeName`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reconciler.model.pods import Pod
from reconciler.model.refs import abridged
from reconciler.model.view import ClusterView

_MOST_NAMES = 3


def nominated_notes(view: ClusterView) -> tuple[str, ...]:
    """One sentence for those that count as being on their node, one for those whose node cannot take them. view: from `with_nominated`."""
    there = [pod for pod in view.nominated if pod.node_name is not None]
    lost = [pod for pod in view.nominated if pod.node_name is None and not pod.deleting]
    notes = []
    if there:
        one = len(there) == 1
        notes.append(
            f"{_listed(there, _waits_for)} (status.nominatedNodeName): {'it counts' if one else 'they count'} as running there, "
            f"and no node is planned for {'it' if one else 'them'}, as Karpenter makes none"
        )
    if lost:
        one = len(lost) == 1
        notes.append(
            f"{_listed(lost, _has_lost)} (status.nominatedNodeName): {'it is' if one else 'they are'} placed like any other pod; "
            f"Karpenter makes no node for {'it' if one else 'them'} until kube-scheduler withdraws the nomination"
        )
    return tuple(notes)


def _listed(pods: Sequence[Pod], words: Callable[[Pod], str]) -> str:
    return abridged(map(words, pods), _MOST_NAMES)


def _waits_for(pod: Pod) -> str:
    return (
        f"Pod/{pod.namespace}/{pod.name} waits for room on {pod.nominated_node}, which kube-scheduler has chosen for it"
    )


def _has_lost(pod: Pod) -> str:
    return f"Pod/{pod.namespace}/{pod.name} was to go to {pod.nominated_node}, which is gone or takes no pods"
