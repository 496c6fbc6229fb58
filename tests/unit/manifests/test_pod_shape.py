"""What a PodSpec asks of a node: requests as kube-scheduler reckons them, and everything else that scheduling looks at."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.pods.pod_shape import pod_spec_from, requests_of, shape_of
from reconciler.model.errors import Invalid
from reconciler.model.pods import HostPort, PodShape
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration


def container(cpu: str | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "app", **({"resources": {"requests": {"cpu": cpu}}} if cpu else {}), **more}


def shape(spec: dict[str, Any], **more: Any) -> PodShape:
    return shape_of(pod_spec_from(spec), **{"namespace": "shop", "labels": {}, **more})


SIDECAR = container("1", restartPolicy="Always")
LIMITED = {"requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "1Gi"}}
OF_THE_POD = {"requests": {"cpu": "5"}, "limits": {"memory": "2Gi"}}


@pytest.mark.parametrize(
    ("says", "spec", "expected"),
    [
        ("containers add up", {"containers": [container("500m"), container("1")]}, {"cpu": "1500m"}),
        ("a large init container sets the request",
         {"initContainers": [container("3"), container("1")], "containers": [container("2")]}, {"cpu": "3"}),
        ("a sidecar runs beside the containers",
         {"initContainers": [SIDECAR], "containers": [container("2")]}, {"cpu": "3"}),
        ("and beside later init containers",
         {"initContainers": [SIDECAR, container("4")], "containers": [container("2")]}, {"cpu": "5"}),
        ("not beside earlier ones",
         {"initContainers": [container("4"), SIDECAR], "containers": [container("2")]}, {"cpu": "4"}),
        ("two sidecars are both there while a later init container runs",
         {"initContainers": [SIDECAR, SIDECAR, container("2")], "containers": [container("1")]}, {"cpu": "4"}),
        ("a limit stands in for an absent request, resource by resource",
         {"containers": [{"resources": LIMITED}]}, {"cpu": "1", "memory": "1Gi"}),
        ("overhead comes on top", {"containers": [container("1")], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}),
        ("the pod's own requests replace the sum for the resources that they name",
         {"containers": [container("1")], "resources": OF_THE_POD}, {"cpu": "5", "memory": "2Gi"}),
        ("the pod's own limit yields to what containers ask for",
         {"containers": [container("1")], "resources": {"limits": {"cpu": "5"}}}, {"cpu": "1"}),
        ("even if that is nothing", {"containers": [container("0")], "resources": {"limits": {"cpu": "5"}}}, {}),
        ("but not its limit of huge pages",
         {"containers": [{"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}],
          "resources": {"limits": {"hugepages-2Mi": "4Mi"}}}, {"hugepages-2Mi": "4Mi"}),
    ],
)  # fmt: skip
def test_what_a_pod_requests(says: str, spec: dict[str, Any], expected: dict[str, str]) -> None:
    """And one slot for pods."""
    assert requests_of(pod_spec_from(spec)).quantities() == {**expected, "pods": "1"}, says


def test_null_fields_are_absent_fields() -> None:
    spec = {"containers": [{"name": "a", "resources": {"requests": {"cpu": None}, "limits": None}}], "affinity": None}
    assert shape(spec) == shape({"containers": [{"name": "b"}]})


def test_a_bad_quantity_names_the_container() -> None:
    with pytest.raises(Invalid, match=r"container app.*'1 core'") as raised:
        shape({"containers": [container("1 core")]})
    assert "500m" in raised.value.hint


@pytest.mark.parametrize("written", ["-1", -1, "-1n"])
@pytest.mark.parametrize("field", ["requests", "limits"])
def test_less_than_nothing_cannot_be_asked_for(field: str, written: object) -> None:
    spec = {"containers": [{"name": "app", "resources": {field: {"memory": written}}}]}
    with pytest.raises(Invalid, match=rf"resources of container app: memory is {written}, which is negative") as raised:
        shape(spec)
    assert raised.value.hint == "write 0 or more, or leave it out"


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "-1"}}}, "the pod"),
        ({"containers": [container("1")], "overhead": {"cpu": "-100m"}}, "overhead"),
        ({"initContainers": [container("-1")]}, "container app"),
    ],
)
def test_nor_may_less_than_nothing_stand_where_it_would_not_count(spec: dict[str, object], place: str) -> None:
    with pytest.raises(Invalid, match=f"resources of {place}: cpu is -"):
        shape(spec)


def test_a_wrong_type_names_the_path() -> None:
    with pytest.raises(Invalid, match=r"expected `array \| null`, got `object` at spec.tolerations"):
        pod_spec_from({"tolerations": {}})


def test_an_operator_that_does_not_exist_lists_those_that_do() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "in", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    with pytest.raises(Invalid, match="'in' of 'zone'") as raised:
        shape({"affinity": {"nodeAffinity": required}})
    assert "NotIn" in raised.value.hint


def test_node_affinity_keeps_required_and_preferred_terms() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}],
        }
    }
    read = shape({"affinity": affinity})
    zones = (Requirement("zone", Operator.IN, ("a", "b")),)
    assert read.required_node_terms[0].expressions == zones
    assert (read.preferred_node_terms[0].weight, read.preferred_node_terms[0].term.expressions) == (5, zones)


def test_pod_affinity_and_anti_affinity_are_kept_apart() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
    }
    read = shape({"affinity": affinity})
    assert read.pod_affinity == ()
    assert read.pod_anti_affinity[0].selector == LabelSelector((("app", "web"),))
    assert read.preferred_pod_affinity[0].term == read.pod_anti_affinity[0]


def test_topology_spread_takes_the_api_servers_defaults() -> None:
    constraint = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    (spread,) = shape({"topologySpreadConstraints": [constraint]}).topology_spread
    assert (spread.max_skew, spread.selector, spread.node_affinity_policy) == (2, None, "Honor")
    assert spread.node_taints_policy == "Ignore"


def test_host_ports_are_those_of_containers_that_keep_running() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    spec = {"containers": [{"ports": ports}], "initContainers": [{"ports": [{"containerPort": 1, "hostPort": 1}]}]}
    assert shape(spec).host_ports == (HostPort(8080),)
    assert shape({**spec, "hostNetwork": True}).host_ports == (HostPort(81), HostPort(8080))


def test_claims_of_ephemeral_volumes_are_named_after_the_real_pod() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}, {"name": "tmp", "ephemeral": {}}]
    assert shape({"volumes": volumes}).volume_claims == ("disk",)
    real = shape({"volumes": volumes}, pod_name="web-0")
    assert real.volume_claims == ("disk", "web-0-tmp")


def test_resource_claims_of_either_kind_are_noticed() -> None:
    for source in ("resourceClaimName", "resourceClaimTemplateName"):
        assert shape({"resourceClaims": [{"name": "gpu", source: "one-gpu"}]}).claims_devices
    assert not shape({"resourceClaims": []}).claims_devices


def test_labels_selectors_and_tolerations_are_carried_over() -> None:
    spec = {"nodeSelector": {"b": "2", "a": "1"}, "tolerations": [{"operator": "Exists"}], "priorityClassName": "high"}
    read = shape(spec, labels={"z": "1", "app": "web"})
    assert read.labels == (("app", "web"), ("z", "1"))
    assert read.node_selector == (("a", "1"), ("b", "2"))
    assert read.tolerations == (Toleration(operator="Exists"),)
    assert (read.priority_class_name, read.scheduler_name) == ("high", "default-scheduler")


def test_fields_that_scheduling_does_not_look_at_make_no_difference() -> None:
    first = {"containers": [{"name": "a", "image": "one", "env": [{"name": "X", "value": "1"}]}], "nodeName": "n1"}
    second = {"containers": [{"name": "b", "image": "two"}], "nodeName": "n2"}
    assert shape(first) == shape(second)
    assert len({shape(first), shape(second)}) == 1


def test_what_the_api_server_adds_for_match_label_keys_makes_a_pod_no_other_than_its_template() -> None:
    def spec(*added: dict[str, Any]) -> dict[str, Any]:
        selecting = {
            "labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [*added]},
            "topologyKey": "zone",
        }
        keys = {"matchLabelKeys": ["pod-template-hash"]}
        term = {**selecting, **keys, "mismatchLabelKeys": ["tenant"]}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        spread = {**selecting, **keys, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return {"containers": [container("1")], "affinity": affinity, "topologySpreadConstraints": [spread]}

    added = {"key": "pod-template-hash", "operator": "In", "values": ["5d"]}
    assert shape(spec(added)) == shape(spec())
