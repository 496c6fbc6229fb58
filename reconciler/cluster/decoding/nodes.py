"""Nodes and NodeClaims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.wire import labels_of, resources_of
from reconciler.manifests.pods.pod_shape import requirement_of
from reconciler.model.nodes import Labels, Node, NodeClaim
from reconciler.model.quantity import parse_duration
from reconciler.model.requirements import Taint

_ACTED_ON = ("karpenter.sh/", "headroom.dev/")
_DEFAULT_EXPIRY = "720h"  # the CRD's default of spec.expireAfter


def _acted_on(texts: wire.Texts | None) -> Labels:
    return tuple(sorted(item for item in texts.items() if item[0].startswith(_ACTED_ON))) if texts else ()


@lru_cache(maxsize=1024)
def _taint(taint: wire.TaintWire) -> Taint:
    return Taint(taint.key, taint.value or "", taint.effect)


def _taints(taints: tuple[wire.TaintWire, ...] | None) -> tuple[Taint, ...]:
    return tuple(map(_taint, taints)) if taints else ()


def node_of(node: wire.NodeWire) -> Node:
    metadata, spec, status = node.metadata, node.spec, node.status
    return Node(
        name=metadata.name,
        allocatable=resources_of(status.allocatable),
        labels=labels_of(metadata.labels),
        annotations=_acted_on(metadata.annotations),
        taints=_taints(spec.taints),
        capacity=resources_of(status.capacity),
        uid=metadata.uid,
        provider_id=spec.provider_id or "",
        ready=any(item.type == "Ready" and item.status == "True" for item in status.conditions or ()),
        unschedulable=bool(spec.unschedulable),
        deleting=metadata.deletion_timestamp is not None,
        created=metadata.creation_timestamp,
        ready_changed=_changed(status.conditions, "Ready"),
        node_claim_uid=next((item.uid for item in metadata.owner_references or () if item.kind == "NodeClaim"), ""),
    )


def _changed(conditions: Sequence[wire.ConditionWire] | None, kind: str) -> datetime | None:
    return next((item.last_transition_time for item in conditions or () if item.type == kind), None)


def node_claim_of(claim: wire.NodeClaimWire) -> NodeClaim:
    metadata, spec, status = claim.metadata, claim.spec, claim.status
    grace = spec.termination_grace_period
    return NodeClaim(
        name=metadata.name,
        labels=labels_of(metadata.labels),
        annotations=_acted_on(metadata.annotations),
        requirements=tuple(
            replace(requirement_of(item), min_values=item.min_values) for item in spec.requirements or ()
        ),
        requests=resources_of(spec.resources.requests),
        taints=_taints(spec.taints),
        startup_taints=_taints(spec.startup_taints),
        uid=metadata.uid,
        node_name=status.node_name or None,
        provider_id=status.provider_id or "",
        conditions=tuple(sorted((item.type, item.status) for item in status.conditions or ())),
        changed=tuple(
            sorted(
                (item.type, item.last_transition_time) for item in status.conditions or () if item.last_transition_time
            )
        ),
        capacity=resources_of(status.capacity),
        allocatable=resources_of(status.allocatable),
        created=metadata.creation_timestamp,
        deleting=metadata.deletion_timestamp is not None,
        termination_grace_period=None if grace is None else parse_duration(grace),
        expire_after=_expiry(spec.expire_after or _DEFAULT_EXPIRY),
        last_pod_event=status.last_pod_event_time or _changed(status.conditions, "Initialized"),
        launch_failure=_launch_failure(status.conditions or ()),
    )


def _launch_failure(conditions: Iterable[wire.ReasonedConditionWire]) -> str:
    """Karpenter sets the condition at every attempt; before the first one it awaits reconciliation."""
    launched = next((item for item in conditions if item.type == "Launched" and item.status != "True"), None)
    return "" if launched is None or launched.reason in {"", "AwaitingReconciliation"} else launched.message


def _expiry(text: str) -> timedelta | None:
    return None if text == "Never" else parse_duration(text)
