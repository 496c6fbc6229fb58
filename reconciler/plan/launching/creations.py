"""New NodeClaims: their names, and who makes them in a forecast.

A name follows from the pool, from what is asked for, and from how many equal NodeClaims come before it. Names that are taken are
skipped. A pass may be repeated, because the last one was cut short or its result is not visible yet. It then asks for
the very same objects, and nothing is made twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.demand import Demand, Keeper, autoscaler_of, keeper_of
from reconciler.model.placement import PlannedNode, chunk_words
from reconciler.model.refs import ObjectRef

LONGEST = 63
"""Characters of a DNS-1123 label, which a NodeClaim's name becomes in several labels."""
_INFIX = "-headroom-"
_DIGITS = 10


def creations(planned: Iterable[PlannedNode], taken: Iterable[str]) -> tuple[NodeClaimCreation, ...]:
    """One for each planned node, in the same order. taken: names of all NodeClaims, also of those being deleted."""
    used = set(taken)
    next_ordinals: dict[str, int] = {}
    made: list[NodeClaimCreation] = []
    for node in planned:
        content = _content(node)
        ordinal = next_ordinals.get(content, 0)
        while (name := _name(node.node_pool, content, ordinal)) in used:
            ordinal += 1
        next_ordinals[content] = ordinal + 1
        used.add(name)
        made.append(NodeClaimCreation(name, node, f"for {chunk_words(node.holdings)}"))
    return tuple(made)


def _content(node: PlannedNode) -> str:
    """What the NodeClaim's spec is made of. Its chunks are left out, since they may change while the node is on its way."""
    return json.dumps(
        [
            node.node_pool,
            node.instance_types,
            node.zones,
            node.capacity_types,
            node.requests.amounts,
            [[item.key, item.operator, item.values, item.min_values] for item in node.requirements],
            node.labels,
        ],
        separators=(",", ":"),
    )


def _name(pool: str, content: str, ordinal: int) -> str:
    digest = hashlib.sha256(f"{ordinal}:{content}".encode()).hexdigest()[:_DIGITS]
    front = pool[: LONGEST - len(_INFIX) - _DIGITS].rstrip("-.")
    return f"{front}{_INFIX}{digest}"


def made_by_others(created: Iterable[NodeClaimCreation], demands: Iterable[Demand]) -> tuple[NodeClaimCreation, ...]:
    """Adds the makers to each node that holds only demands for which headroom makes no nodes."""
    makers = {demand.ref: maker for demand in demands if (maker := maker_of(demand))}
    return tuple(_made(item, makers) for item in created)


def maker_of(demand: Demand) -> str:
    """Who makes nodes for the demand, in words; "" for headroom."""
    match keeper_of(demand):
        case Keeper.AUTOSCALER:
            return autoscaler_of(demand) or "the autoscaler that serves it"
        case Keeper.BALLOON_PODS:
            return "the autoscaler, for its balloon pods"
    return ""


def _made(item: NodeClaimCreation, makers: Mapping[ObjectRef, str]) -> NodeClaimCreation:
    its_makers = {makers.get(holding.demand, "") for holding in item.planned.holdings}
    if not its_makers or "" in its_makers:
        return item
    maker = " and ".join(sorted(its_makers))
    return replace(item, made_by=maker, reason=f"{item.reason}, made by {maker}")
