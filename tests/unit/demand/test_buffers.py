"""What buffers ask for, and how they say that they are not ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.resolve import READY
from reconciler.model.attachments import PersistentVolume, Storage, VolumeClaim
from reconciler.model.buffers import Buffer, Dialect, Recreation
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.pods import Pod, PodShape, PriorityClass, ResourceQuota, Workload
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import PassCache
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import ClusterView, LiveObject
from tests.builders import buffer, buffer_ref, deployment, one_of, pod, selects, shape

BEFORE = PassCache()
"""Of whatever was asked last: the answers are the same with it, though the buffers have the same names."""
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ask(
    *buffers: Buffer,
    workloads: Iterable[Workload] = (),
    view: ClusterView | None = None,
    dialect: Dialect = Dialect.KARPENTER,
    priority_classes: tuple[PriorityClass, ...] = (),
) -> tuple[list[Demand], list[Finding]]:
    declared = Declared(buffers=buffers, workloads=tuple(workloads), priority_classes=priority_classes)
    demands, findings = buffer_demands(declared, view or ClusterView(), dialect=dialect)
    for _ in range(2):
        assert buffer_demands(declared, view or ClusterView(), dialect=dialect, cache=BEFORE) == (demands, findings)
    return list(demands), list(findings)


def ask_one(one: Buffer, **others: object) -> tuple[Demand, list[Finding]]:
    workloads = others.pop("workloads", (deployment(),))
    (demand,), findings = ask(one, workloads=workloads, **others)  # type: ignore[arg-type]
    return demand, findings


def readiness(demand: Demand) -> tuple[str, str]:
    (condition,) = [item for item in demand.conditions if item.type == READY]
    return condition.status, condition.reason


def test_chunks_have_the_shape_of_the_workloads_pods_and_the_buffers_labels() -> None:
    web = shape("2", labels={"app": "web"}, node_selector={"disk": "ssd"})
    demand, findings = ask_one(buffer(), workloads=[deployment(pod_shape=web)])
    (group,) = demand.groups
    assert group.count == demand.desired == 3
    assert group.shape.requests == web.requests
    assert dict(group.shape.labels) == {
        "app": "web",
        "karpenter.sh/capacity-type": "buffer",
        "autoscaling.x-k8s.io/buffer": "web",
        "autoscaling.x-k8s.io/buffer-namespace": "shop",
    }
    assert dict(group.shape.node_selector) == {"disk": "ssd"}
    assert readiness(demand) == ("True", "Resolved")
    assert findings == []


def test_a_chunk_has_no_priority_and_of_its_templates_claims_those_that_are_bound() -> None:
    storage = Storage(
        volumes=(PersistentVolume("disk-1"),),
        claims=(
            VolumeClaim("shop", "bound", volume="disk-1", bound=True),
            VolumeClaim("shop", "half", volume="disk-1"),
            VolumeClaim("shop", "lost", volume="disk-2", bound=True),
            VolumeClaim("shop", "waits"),
        ),
    )
    names = ("bound", "half", "lost", "missing", "waits")
    claiming = deployment(pod_shape=shape(volume_claims=names, priority_class_name="gold"))
    view = ClusterView(storage=storage, pods=(pod("web-0", pod_shape=shape(volume_claims=("bound", "own-of-web-0"))),))
    for dialect in Dialect:
        demand, _ = ask_one(buffer(), workloads=[claiming], view=view, dialect=dialect)
        assert demand.groups[0].shape.volume_claims == ("bound",)
        assert demand.groups[0].shape.priority_class_name == ""


def test_chunks_with_resource_claims_are_said_to_be_not_judged() -> None:
    claiming = deployment(pod_shape=shape("2", claims_devices=True))
    demand, (finding,) = ask_one(buffer(), workloads=[claiming])
    assert demand.groups[0].shape.claims_devices
    assert (finding.code, finding.path) == ("resource-claims", "spec.scalableRef.name")
    assert finding.message.startswith("Deployment/shop/web names resource claims (Dynamic Resource Allocation)")


def test_the_weightier_workloads_buffer_goes_first() -> None:
    gold = deployment("db", pod_shape=shape(priority_class_name="gold"))
    classes = (PriorityClass("gold", 1000), PriorityClass("usual", 10, global_default=True))
    demands, _ = ask(buffer("a"), buffer("b", target="db"), workloads=[deployment(), gold], priority_classes=classes)
    assert [(demand.ref.name, demand.priority) for demand in demands] == [("a", 10), ("b", 1000)]


@pytest.mark.parametrize("written", ["shop", "other"])
def test_targets_of_other_namespaces_are_not_found(written: str) -> None:
    one = replace(buffer(), target=deployment(namespace=written).ref)
    demand, _ = ask_one(one, workloads=[deployment(namespace="other")])
    assert readiness(demand) == ("False", "ScalableRefNotFound")


def clone_set(replicas: int | None = None) -> Workload:
    ref = ObjectRef("apps.kruise.io", "CloneSet", "shop", "web")
    return Workload(ref, None, replicas, observed_replicas=4, selector=selects())


def for_clone_set(**fields: object) -> Buffer:
    return replace(buffer(replicas=None), target=clone_set().ref, **fields)  # type: ignore[arg-type]


def test_any_kind_with_a_scale_takes_the_shape_of_its_newest_pod() -> None:
    ages = {"web-old": (3, "1"), "web-new": (1, "2"), "web-other": (0, "4")}
    pods = tuple(
        pod(
            name,
            node="node-1",
            pod_shape=shape(cpu, labels={"app": "web" if name != "web-other" else "other"}),
            created=NOON - timedelta(hours=hours),
        )
        for name, (hours, cpu) in ages.items()
    )
    leaving = pod("web-leaving", pod_shape=shape("8", labels={"app": "web"}), created=NOON, deleting=True)
    view = ClusterView(pods=(*pods, leaving))
    demand, _ = ask_one(for_clone_set(percentage=50), workloads=[clone_set()], view=view)
    assert demand.desired == 2
    assert demand.groups[0].shape.requests.get("cpu") == 2000


def test_a_scale_without_a_pod_is_waited_for() -> None:
    demand, (finding,) = ask_one(for_clone_set(replicas=1), workloads=[clone_set()])
    assert readiness(demand) == ("False", "ResolutionFailed")
    assert finding.code == "target-without-pods"


@pytest.mark.parametrize(
    ("fields", "karpenter", "autoscaler"),
    [
        ({"percentage": 50, "limits": (("cpu", 3000),)}, 3, 0),
        ({}, 0, None),
        ({"limits": (("example.com/gpu", 2),)}, 0, None),
        ({"replicas": 4, "limits": (("example.com/gpu", 2),)}, 4, None),
    ],
)
def test_the_dialects_differ_and_it_is_said(fields: dict[str, object], karpenter: int, autoscaler: int | None) -> None:
    one = replace(buffer(replicas=None), **fields)  # type: ignore[arg-type]
    for dialect, count in ((Dialect.KARPENTER, karpenter), (Dialect.CLUSTER_AUTOSCALER, autoscaler)):
        demand, findings = ask_one(one, workloads=[deployment(replicas=0)], dialect=dialect)
        assert demand.desired == count
        assert "dialects-differ" in [finding.code for finding in findings]


def seed_buffer(**fields: object) -> Buffer:
    base = Buffer(ObjectRef("autoscaling.x-k8s.io", "Buffer", "shop", "web"), target=deployment().ref)
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("replicas", "asked", "count"), [(0, 0, 2), (10, 0, 2), (40, 0, 4), (200, 0, 8), (10, 5, 5), (10, 9, 8)]
)
def test_a_percentage_is_clamped_to_its_counts(replicas: int, asked: int, count: int) -> None:
    """asked: what a schedule or `/scale` makes the least."""
    one = seed_buffer(percentage=10, minimum_count=2, maximum_count=8, replicas=asked)
    demand, findings = ask_one(one, workloads=[deployment(replicas=replicas)])
    assert demand.desired == count
    assert findings == []


def test_a_buffer_may_bring_its_own_pods() -> None:
    demand, _ = ask_one(seed_buffer(target=None, pod_shape=shape("500m"), replicas=5), workloads=[])
    assert [(group.count, group.shape.requests.get("cpu")) for group in demand.groups] == [(5, 500)]


def test_keep_minimum_is_handed_on() -> None:
    demand, _ = ask_one(seed_buffer(replicas=5, recreation=Recreation.KEEP_MINIMUM))
    assert demand.recreation is Recreation.KEEP_MINIMUM
    assert demand.desired == 5


def test_a_dedicated_minimum_is_filled_by_its_own_pods() -> None:
    dedicated = seed_buffer(replicas=5, recreation=Recreation.KEEP_MINIMUM, pod_selector=selects("batch"))
    small = shape("500m", "100Mi", labels={"app": "batch"})
    pods = (
        pod("a", node="node-1", pod_shape=small),
        pod("b", node="node-1", pod_shape=small),
        pod("c", node="node-2", pod_shape=shape("1", "2Gi", labels={"app": "batch"})),
        pod("d", pod_shape=shape("1", labels={"app": "batch"})),
        pod("e", node="node-2", pod_shape=shape("1", labels={"app": "other"})),
        pod("f", node="node-2", pod_shape=shape("4", "8Gi", labels={"app": "batch"}), deleting=True),
    )
    demand, _ = ask_one(dedicated, view=ClusterView(pods=pods))
    # 2 cores and 2.2Gi are used by running pods of the selector: two whole chunks of 1 core and 1Gi.
    assert (demand.desired, demand.filled) == (3, 2)
    assert demand.recreation is Recreation.KEEP_EMPTY
    assert demand.explanation[-1] == "its own pods fill 2: 3 left"


def test_a_dedicated_buffers_pods_may_be_selected_by_expressions() -> None:
    selector = LabelSelector((), (one_of("app", "batch", "batch-2"),))
    dedicated = seed_buffer(replicas=5, recreation=Recreation.KEEP_MINIMUM, pod_selector=selector)
    pods = tuple(
        pod(name, node="node-1", pod_shape=shape(labels={"app": name})) for name in ("batch", "batch-2", "batch-3")
    )
    demand, _ = ask_one(dedicated, view=ClusterView(pods=pods))
    assert demand.desired == 3


def annotated(**annotations: str) -> Buffer:
    pairs = tuple((f"headroom.dev/{key}", value) for key, value in annotations.items())
    return buffer(annotations=pairs)


def there(status: Mapping[str, object]) -> ClusterView:
    return ClusterView(objects={buffer_ref(): LiveObject(buffer_ref(), {"spec": {"replicas": 9}, "status": status})})


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    ("view", "size", "words"),
    [
        (there({"replicas": 7}), 7, "7 chunks"),
        (there({"replicas": 1}), 1, "1 chunk"),
        (there({}), 0, "0 chunks"),
        (ClusterView(), 0, "0 chunks"),
    ],
)
def test_a_suspended_buffer_opens_no_nodes_and_stays_at_the_size_in_its_status(
    view: ClusterView, size: int, words: str, dialect: Dialect
) -> None:
    quota = ResourceQuota("shop", "small", (("cpu", 500),))
    view = replace(view, resource_quotas=(quota,))
    demand, findings = ask_one(annotated(suspend="true"), view=view, dialect=dialect)
    assert not demand.opens_nodes
    assert demand.suspended
    assert demand.desired == sum(group.count for group in demand.groups) == size
    assert findings == []
    said = {condition.type: condition.message for condition in demand.conditions}
    assert said["ReadyForProvisioning"] == words
    assert f"it stays at {words}, " in said["Suspended"]


def test_of_a_suspended_buffer_whose_pods_are_not_known_no_size_is_said() -> None:
    demand, _ = ask_one(annotated(suspend="true"), workloads=(), view=there({"replicas": 7}))
    assert demand.desired is None
    assert demand.conditions[-1].message == "headroom.dev/suspend: no other node is taken or made for it"


def test_a_buffer_may_be_suspended_in_the_cluster() -> None:
    body = {"metadata": {"annotations": {"headroom.dev/suspend": "true"}}}
    view = ClusterView(objects={buffer_ref(): LiveObject(buffer_ref(), body)})
    assert not ask_one(buffer(), view=view)[0].opens_nodes


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (buffer(pod_template="small"), "template-and-scalable"),
        (buffer(target=None), "buffer-without-reference"),
        (buffer(strategy="example.com/standby"), "unknown-strategy"),
    ],
)
def test_what_manifests_report_with_line_and_column_is_reported_here_only_for_the_clusters_own(
    one: Buffer, code: str
) -> None:
    demand, (finding,) = ask_one(one)
    assert finding.code == code
    assert readiness(demand) == ("False", "ResolutionFailed")
    in_git, none = ask_one(replace(one, position=SourcePosition("web.yaml", 1)))
    assert none == []
    assert in_git.desired is None


def test_a_percentage_of_a_pod_template_is_ignored() -> None:
    template = Workload(ObjectRef("", "PodTemplate", "shop", "small"), shape())
    one = buffer(target=None, pod_template="small", percentage=50)
    demand, (finding,) = ask_one(one, workloads=[template])
    assert demand.desired == 3
    assert finding.code == "percentage-ignored"


@pytest.mark.parametrize(("limit", "count", "codes"), [(750_000, 1, []), (6_000, 0, ["chunk-too-large"]), (0, 0, [])])
def test_limits_below_one_chunk_are_an_error_unless_they_are_zero(limit: int, count: int, codes: list[str]) -> None:
    """`cpu: 750` for `750m` in a template left a buffer empty, and no finding said so."""
    of = replace(deployment(), shape=shape("750"))
    demand, findings = ask_one(buffer(replicas=1, limits=(("cpu", limit),)), workloads=(of,))
    assert [(item.code, item.path) for item in findings] == [(code, "spec.limits") for code in codes]
    assert demand.desired == count


def test_balloon_pods_of_a_buffer_are_not_counted_against_it_a_second_time() -> None:
    """Of four cores the three balloon pods use three; another's balloon pod takes what is left."""
    balloons = [balloon_pod(f"own-{number}") for number in range(3)]
    used = Resources.parse({"cpu": "4"})
    quota = ResourceQuota("shop", "team", (("cpu", 4000),), used)
    demand, _ = ask_one(
        buffer(replicas=5),
        view=ClusterView(resource_quotas=(quota,), pods=(*balloons, balloon_pod("other", of="gone"))),
        dialect=Dialect.CLUSTER_AUTOSCALER,
    )
    assert (demand.desired, demand.explanation[-1]) == (3, "3 within ResourceQuota team")


def test_balloon_pods_outside_a_quotas_scope_are_not_taken_off_what_it_uses() -> None:
    scope = Requirement("PriorityClass", Operator.DOES_NOT_EXIST)
    quota = ResourceQuota("shop", "team", (("cpu", 4000),), Resources.parse({"cpu": "3"}), (scope,))
    demand, _ = ask_one(
        buffer(replicas=5),
        view=ClusterView(resource_quotas=(quota,), pods=(balloon_pod("own"),)),
        dialect=Dialect.CLUSTER_AUTOSCALER,
    )
    assert demand.desired == 1


def balloon_pod(name: str, *, of: str = "web") -> Pod:
    labels = {"headroom.dev/balloon": f"balloon-capacitybuffer-{of}"}
    return pod(name, pod_shape=shape(labels=labels, priority_class_name="headroom-balloon"))


def test_a_buffer_that_is_only_in_git_is_the_youngest_for_quotas() -> None:
    quota = ResourceQuota("shop", "team", (("cpu", 4000),))
    old = buffer("b", created="2026-01-01T00:00:00Z")
    demands, _ = ask(
        buffer("a"),
        old,
        workloads=[deployment()],
        view=ClusterView(resource_quotas=(quota,)),
        dialect=Dialect.CLUSTER_AUTOSCALER,
    )
    assert [(demand.ref.name, demand.desired) for demand in demands] == [("a", 1), ("b", 3)]


@pytest.mark.parametrize(("pod_shape", "found"), [(shape("0", "0"), ["chunk-too-small"]), (shape("0", "1Mi"), [])])
def test_chunks_that_request_nothing_are_said_to_keep_no_room(pod_shape: PodShape, found: list[str]) -> None:
    _, findings = ask_one(buffer(), workloads=[deployment(pod_shape=pod_shape)])
    assert [finding.code for finding in findings] == found
    assert ask_one(buffer(replicas=0), workloads=[deployment(pod_shape=pod_shape)])[1] == []
