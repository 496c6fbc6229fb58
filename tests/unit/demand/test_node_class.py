"""Buffers of so much CPU and memory on a node class: how the total is split."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.demand.node_class import Split, split
from reconciler.demand.resolve import Unresolved
from reconciler.model.buffers import Buffer, NodeClassCapacity
from reconciler.model.declared import Declared
from reconciler.model.nodes import NODEPOOL_LABEL, InstanceType, NodeClassRef, NodePool
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint, Toleration
from tests.builders import instance_type, node_pool, one_of, resources

POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")


def of_capacity(
    cpu: str,
    memory: str,
    *,
    chunk: Resources | None = None,
    target: ObjectRef | None = POOL,
    node_selector: tuple[tuple[str, str], ...] = (),
) -> Buffer:
    return Buffer(
        ObjectRef("autoscaling.x-k8s.io", "Buffer", "ci", "tests"),
        target=target,
        node_class=NodeClassCapacity(resources(cpu, memory), chunk, node_selector),
    )


def parts(buffer: Buffer, *types: InstanceType, pools: tuple[NodePool, ...] = (node_pool(),)) -> Split:
    answer = split(buffer, pools, types, Declared().absence_of)
    assert isinstance(answer, Split)
    return answer


def test_chunks_as_written_never_exceed_the_total() -> None:
    answer = parts(of_capacity("10", "100Gi", chunk=resources("3", "1Gi")))
    assert answer.count == 3
    assert answer.shape.requests == resources("3", "1Gi", pods="1")
    assert answer.facts == ("cpu 10, memory 100Gi in 3 chunks of cpu 3, memory 1Gi, as written",)


def test_a_total_of_nothing_has_no_chunks() -> None:
    answer = parts(of_capacity("0", "0"))
    assert (answer.count, answer.facts) == (0, ("nothing in 0 chunks of nothing, chosen to fit the nodes",))
    assert parts(of_capacity("0", "4Gi")).count == 1


def test_a_chunk_larger_than_the_total_is_refused() -> None:
    answer = split(of_capacity("2", "8Gi", chunk=resources("3", "1Gi")), [node_pool()], (), Declared().absence_of)
    assert isinstance(answer, Unresolved)
    assert answer.code.name == "chunk-too-large"


def test_a_chunk_without_cpu_and_memory_is_refused() -> None:
    """A document with such a chunk is refused earlier, an object of the cluster is not."""
    chunk = Resources.parse({"nvidia.com/gpu": 1})
    answer = split(of_capacity("10", "100Gi", chunk=chunk), [node_pool()], (), Declared().absence_of)
    assert isinstance(answer, Unresolved)


def test_a_chosen_chunk_is_about_one_core_in_the_totals_proportions() -> None:
    answer = parts(of_capacity("40", "5120Mi"))
    assert answer.count == 40
    assert answer.shape.requests == resources("1", "128Mi", pods="1")
    assert "chosen to fit the nodes" in answer.facts[0]


def test_a_chosen_chunk_takes_at_most_half_of_the_largest_allowed_node() -> None:
    small, large = instance_type("s", cpu="2", memory="4Gi"), instance_type("l", cpu="8", memory="64Gi")
    # 256Gi over 4 cores: a chunk of one core would have 64Gi.
    only_small = node_pool(requirements=[one_of("node.kubernetes.io/instance-type", "s")])
    total = of_capacity("4", "256Gi")
    assert parts(total).shape.requests.get("memory") == 64 * 2**30
    for pools, largest in (((node_pool(),), large), ((only_small,), small)):
        answer = parts(total, small, large, pools=pools)
        assert answer.shape.requests.get("memory") <= largest.allocatable.get("memory") // 2
        assert answer.count * answer.shape.requests.get("memory") <= 256 * 2**30


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement("example.com/memory", Operator.LT, ("9",)),
        Requirement("example.com/memory", Operator.LTE, ("8",)),
        Requirement("example.com/memory", Operator.NOT_IN, ("64",)),
        Requirement("example.com/large", Operator.DOES_NOT_EXIST),
        Requirement("kubernetes.io/arch", Operator.IN, ("arm64",)),
    ],
    ids=str,
)
def test_only_nodes_that_every_requirement_allows_count(requirement: Requirement) -> None:
    small, large = instance_type("s", cpu="2", memory="8Gi"), instance_type("l", cpu="8", memory="64Gi")
    small = replace(small, architecture="arm64", labels=(("example.com/memory", "8"),))
    large = replace(large, labels=(*large.labels, ("example.com/large", "true"), ("example.com/memory", "64")))
    total, pools = of_capacity("4", "256Gi"), (node_pool(requirements=[requirement]),)
    assert parts(total, small, large, pools=pools) == parts(total, small, pools=pools)


def test_chunks_go_to_the_pools_that_are_meant_tainted_or_not() -> None:
    pool = node_pool(taints=[Taint("team", "ci", "NoSchedule")])
    answer = parts(of_capacity("4", "8Gi"), pools=(pool, node_pool("other")))
    (term,) = answer.shape.required_node_terms
    assert term.expressions == (one_of(NODEPOOL_LABEL, "general"),)
    assert answer.shape.tolerations == (Toleration("team", "Equal", "ci", "NoSchedule"),)


def test_a_group_that_no_pool_uses_is_passed_over_where_kind_and_name_are_those_of_a_class_in_use() -> None:
    """The Buffers API proposal's own example says `apps/v1` of a node class."""
    answer = parts(of_capacity("4", "8Gi", target=ObjectRef("apps", "KWOKNodeClass", "", "default")))
    (note,) = answer.notes
    assert note.code.name == "target-in-another-group"
    assert note.message == (
        "no NodePool uses a KWOKNodeClass of the API group apps: default of karpenter.kwok.sh is taken"
    )
    exact = parts(of_capacity("4", "8Gi", target=ObjectRef("karpenter.kwok.sh", "KWOKNodeClass", "", "default")))
    assert exact.notes == ()
    assert exact.shape == answer.shape


@pytest.mark.parametrize(
    "target",
    [
        ObjectRef("apps", "KWOKNodeClass", "", "other"),
        ObjectRef("apps", "EC2NodeClass", "", "default"),
        ObjectRef("other.example.com", "KWOKNodeClass", "", "default"),
    ],
)
def test_a_group_that_a_pool_uses_is_meant_as_written(target: ObjectRef) -> None:
    classes = (NodeClassRef("other.example.com", "OtherClass", "default"), node_pool().template.node_class)
    pools = tuple(
        node_pool(f"pool-{index}", template=replace(node_pool().template, node_class=node_class))
        for index, node_class in enumerate(classes)
    )
    answer = split(of_capacity("4", "8Gi", target=target), pools, (), Declared().absence_of)
    assert isinstance(answer, Unresolved)
    assert answer.code.name == "target-not-found"


def test_a_node_class_means_every_pool_that_uses_it() -> None:
    target = ObjectRef("karpenter.kwok.sh", "KWOKNodeClass", "", "default")
    answer = parts(of_capacity("4", "8Gi", target=target), pools=(node_pool("b"), node_pool("a")))
    assert answer.shape.required_node_terms[0].expressions[0].values == ("a", "b")


def test_without_a_target_any_node_will_do() -> None:
    answer = parts(of_capacity("4", "8Gi", target=None, node_selector=(("disk", "ssd"),)))
    assert answer.shape.required_node_terms == ()
    assert answer.shape.node_selector == (("disk", "ssd"),)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (POOL._replace(name="gone"), "ScalableRefNotFound"),
        (ObjectRef("karpenter.k8s.aws", "EC2NodeClass", "", "default"), "ResolutionFailed"),
    ],
)
def test_a_node_class_that_nothing_makes_nodes_of_is_not_ready(target: ObjectRef, reason: str) -> None:
    answer = split(of_capacity("4", "8Gi", target=target), [node_pool()], (), Declared().absence_of)
    assert isinstance(answer, Unresolved)
    assert answer.reason == reason
