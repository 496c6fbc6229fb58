"""What a pass works with, of what is declared and what the cluster has."""

from reconciler.manifests.repository.declared import live_declared, read
from reconciler.manifests.repository.in_force import InForce, in_force
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject, Manifest

REQUEST = b"""\
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: train, namespace: ml}
spec:
  provisioningClassName: check-capacity.autoscaling.x-k8s.io
  podSets: [{podTemplateRef: {name: t}, count: 2}]
"""
BUFFER = b"""\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: CapacityBuffer
metadata: {name: web, namespace: shop}
spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: web}, replicas: 2}
"""
PARTIAL = b"""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {weight: 20}
"""
LIVE_POOL: Manifest = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general", "uid": "u"},
    "spec": {
        "weight": 5,
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
            },
        },
    },
}
POOL_REF = ObjectRef("karpenter.sh", "NodePool", "", "general")
REQUEST_REF = ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "ml", "train")


def forms(text: bytes, *live: tuple[ObjectRef, Manifest], **served: tuple[str, ...]) -> InForce:
    objects = {ref: LiveObject(ref, body) for ref, body in live}
    groups = {"NodePool": "karpenter.sh"}
    apis = {(groups.get(kind, "autoscaling.x-k8s.io"), kind): versions for kind, versions in served.items()}
    return in_force(read({"a.yaml": text}), live_declared(ClusterView(objects=objects)), objects, apis)


def test_a_version_that_the_cluster_does_not_serve_is_converted() -> None:
    found = forms(BUFFER, CapacityBuffer=("v1beta1",))
    assert [item.manifest["apiVersion"] for item in found.repository.manifests] == ["autoscaling.x-k8s.io/v1beta1"]
    assert found.findings == ()


def test_a_kind_that_the_cluster_does_not_serve_still_counts_but_is_not_applied() -> None:
    found = forms(BUFFER, NodePool=("v1",))
    assert found.repository.manifests == ()
    assert [buffer.ref.name for buffer in found.effective.buffers] == ["web"]
    (finding,) = found.findings
    assert finding.code == "not-served"
    assert finding.message.startswith("the cluster does not serve CapacityBuffer of autoscaling.x-k8s.io, so")
    assert "it comes with the autoscaler" in finding.hint


def test_offline_everything_is_taken_as_written() -> None:
    assert [item.manifest["apiVersion"] for item in forms(BUFFER).repository.manifests] == [
        "autoscaling.x-k8s.io/v1alpha1"
    ]


def test_a_partial_pool_is_laid_over_the_live_one() -> None:
    (pool,) = forms(PARTIAL, (POOL_REF, LIVE_POOL)).effective.node_pools
    assert pool.weight == 20
    assert pool.uid == "u"
    assert pool.template.requirements[0].values == ("linux",)


def test_an_edited_request_is_a_finding_and_stays_as_it_is() -> None:
    live: Manifest = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "t"}, "count": 1}],
        },
    }
    found = forms(REQUEST, (REQUEST_REF, live))
    (finding,) = found.findings
    assert (finding.code, finding.path) == ("immutable-field", "spec.podSets[0].count")
    assert "new name" in finding.hint
    assert found.repository.manifests == ()
    assert REQUEST_REF in found.repository.broken
