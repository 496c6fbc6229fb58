"""A pool of small nodes, pods that fill one each, and what a test asks about the nodes that are held for them."""

from __future__ import annotations

from typing import Any

from tests.controlplane.rest import Document, condition
from tests.e2e.shop import NODE_POOL, Shop, deployment

HOLD = "karpenter.sh/do-not-disrupt"
POOL = (
    NODE_POOL.replace('values: ["4", "8"]', 'values: ["4"]')
    .replace("consolidateAfter: 0s", "consolidateAfter: 10s")
    .replace('nodes: "100%"', 'nodes: "1"')
)
"""A node holds one chunk of three cores, and one node may go at a time."""


def web(replicas: int, *, name: str = "web") -> Document:
    """Pods of three cores, labelled with the name."""
    return deployment(replicas, name=name, cpu="3")


def held_nodes(shop: Shop) -> dict[str, Document]:
    """Ready nodes that are protected and not being deleted, by uid."""
    return {
        node["metadata"]["uid"]: node
        for node in shop.api.list("v1", "Node")
        if node["metadata"].get("annotations", {}).get(HOLD)
        and condition(node, "Ready") == "True"
        and not node["metadata"].get("deletionTimestamp")
    }


def provisioning(shop: Shop) -> tuple[str, str]:
    """Status and message of the buffer's condition Provisioning."""
    conditions: dict[str, dict[str, Any]] = {item["type"]: item for item in shop.buffer()["status"]["conditions"]}
    return conditions["Provisioning"]["status"], conditions["Provisioning"]["message"]


def is_full(shop: Shop) -> bool:
    return provisioning(shop)[0] == "True"
