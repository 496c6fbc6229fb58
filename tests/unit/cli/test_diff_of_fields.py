"""Findings of `headroom diff` about a field stand at the line of that field, also where two documents or the cluster show them."""

from __future__ import annotations

import pytest

from tests.builders import manifest
from tests.unit.cli.two_folders import POOL, REQUEST, SHAPE, Document, Folders, node

START = {"pool.yaml": POOL, "shape.yaml": SHAPE}
TWO_SETS = """
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
OF_NOBODY = """
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
NODES = {"nodes": [node("one", "general"), node("two", "general")]}
DYNAMIC = {
    "nodepools": [manifest("karpenter.sh/v1", "NodePool", "general", spec={"template": {"spec": {"requirements": []}}})]
}
STATIC = POOL.replace('limits: {cpu: "400"}', "limits: {nodes: 40}")


@pytest.mark.parametrize(
    ("code", "before", "after", "cluster", "path", "text"),
    [
        ("immutable-field", {"train.yaml": TWO_SETS}, {"train.yaml": TWO_SETS.replace("60", "61")}, {},
         "spec.podSets[1].count", "count: 61"),
        ("immutable-field", {"train.yaml": REQUEST},
         {"train.yaml": REQUEST.replace("name: web}, count: 60", "name: other}, count: 61")}, {},
         "spec.podSets[0]", "podSets: [{podTemplateRef: {name: other}, count: 61}]"),
        ("pool-over-limit", {}, {"pool.yaml": POOL.replace("400", "10")}, NODES,
         "spec.limits.cpu", 'limits: {cpu: "10"}'),
        ("target-not-found", {}, {"web.yaml": OF_NOBODY}, {}, "spec.scalableRef.name", "name: wbe"),
        ("static-pool-change", {"pool.yaml": STATIC}, {"pool.yaml": f"{STATIC}  replicas: 3\n"}, DYNAMIC,
         "spec.replicas", "replicas: 3"),
    ],
    ids=["a field that cannot change", "several in one list", "a lowered limit", "a target that is not there", "a static pool"],
)  # fmt: skip
def test_a_finding_stands_at_its_field(
    folders: Folders,
    code: str,
    before: dict[str, str],
    after: dict[str, str],
    cluster: dict[str, list[Document]],
    path: str,
    text: str,
) -> None:
    folders.lists |= cluster
    new = folders.document(START | after, before=START | before)["changes"]["findings"]["new"]
    (finding,) = [item for item in new if item["code"] == code]
    line = (START | after)[finding["file"]].splitlines()[finding["line"] - 1]
    assert (finding["path"], line.strip()) == (path, text)


def test_a_removed_document_whose_object_never_was_in_the_cluster(folders: Folders) -> None:
    """It stayed in the cluster, by the report."""
    partial = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: elsewhere}\nspec: {weight: 5}\n"
    before, after = {"pool.yaml": POOL, "two.yaml": partial}, {"pool.yaml": POOL, "two.yaml": ""}
    (row,) = folders.document(after, before=before)["changes"]["objects"]
    assert (row["action"], row["reason"]) == ("delete", "no longer declared; not in this cluster")
