"""Findings of `headroom diff` about a field stand at the line of that field, also where two documents or the cluster show them."""

from __future__ import annotations

from typing import Any

from tests.builders import manifest
from tests.unit.cli.two_folders import POOL, REQUEST, SHAPE, Folders, node

START = {"pool.yaml": POOL, "shape.yaml": SHAPE}


def found(folders: Folders, code: str, after: dict[str, str], before: dict[str, str]) -> tuple[str, int, str]:
    """Path, line and the line's text."""
    new: list[dict[str, Any]] = folders.document(after, before=before)["changes"]["findings"]["new"]
    (finding,) = [item for item in new if item["code"] == code]
    text = after[finding["file"]].splitlines()[finding["line"] - 1]
    return finding["path"], finding["line"], text.strip()


def test_an_edited_field_that_cannot_change(folders: Folders) -> None:
    request = """
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: train, namespace: shop}
spec:
  provisioningClassName: atomic-scale-up.kubernetes.io
  podSets:
    - podTemplateRef: {name: web}
      count: 2
    - podTemplateRef: {name: web}
      count: 60
"""
    before = START | {"train.yaml": request}
    after = START | {"train.yaml": request.replace("60", "61")}
    assert found(folders, "immutable-field", after, before) == ("spec.podSets[1].count", 11, "count: 61")


def test_several_edits_in_one_list_stand_where_it_begins(folders: Folders) -> None:
    before = START | {"train.yaml": REQUEST}
    after = START | {"train.yaml": REQUEST.replace("name: web}, count: 60", "name: other}, count: 61")}
    path, _, text = found(folders, "immutable-field", after, before)
    assert path == "spec.podSets[0]"
    assert text.startswith("podSets:")


def test_a_lowered_limit(folders: Folders) -> None:
    folders.lists["nodes"] = [node("one", "general"), node("two", "general")]
    after = {"pool.yaml": POOL.replace("400", "10")}
    path, _, text = found(folders, "pool-over-limit", after, {"pool.yaml": POOL})
    assert (path, text) == ("spec.limits.cpu", 'limits: {cpu: "10"}')


def test_a_target_that_is_not_there(folders: Folders) -> None:
    buffer = """
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web, namespace: shop}
spec:
  scalableRef:
    apiGroup: apps
    kind: Deployment
    name: wbe
  replicas: 2
"""
    path, line, text = found(folders, "target-not-found", START | {"web.yaml": buffer}, START)
    assert (path, line, text) == ("spec.scalableRef.name", 9, "name: wbe")


def test_a_pool_that_becomes_static(folders: Folders) -> None:
    folders.lists["nodepools"] = [
        manifest("karpenter.sh/v1", "NodePool", "general", spec={"template": {"spec": {"requirements": []}}})
    ]
    pool = POOL.replace('limits: {cpu: "400"}', "limits: {nodes: 40}")
    path, _, text = found(folders, "static-pool-change", {"pool.yaml": pool + "  replicas: 3\n"}, {"pool.yaml": pool})
    assert (path, text) == ("spec.replicas", "replicas: 3")


def test_a_removed_document_whose_object_never_was_in_the_cluster(folders: Folders) -> None:
    """It stayed in the cluster, by the report."""
    partial = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: elsewhere}\nspec: {weight: 5}\n"
    (row,) = folders.document({"pool.yaml": POOL, "two.yaml": ""}, before={"pool.yaml": POOL, "two.yaml": partial})[
        "changes"
    ]["objects"]
    assert (row["action"], row["reason"]) == ("delete", "no longer declared; not in this cluster")
