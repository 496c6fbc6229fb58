"""Nodes that share a hostname are told of."""

from __future__ import annotations

from reconciler.plan.findings import hostname_findings
from tests.builders import node
from tests.unit.placement.worlds import with_hostname


def test_nothing_is_said_where_every_node_has_its_own_or_none() -> None:
    assert (
        hostname_findings((node("a"), node("b"), with_hostname(node("c"), None), with_hostname(node("d"), None))) == ()
    )


def test_each_hostname_of_several_nodes_is_a_finding() -> None:
    nodes = [with_hostname(node(name), name[0]) for name in ("b2", "b1", "a1", "a2", "c1")]

    first, second = hostname_findings(nodes)

    assert (first.code, str(first.ref)) == ("shared-hostname", "Node/a1")
    assert first.message == (
        "2 nodes carry kubernetes.io/hostname=a (a1, a2): spread, affinity and anti-affinity by it take them for one"
    )
    assert str(second.ref) == "Node/b1"


def test_of_many_a_few_are_named() -> None:
    nodes = [with_hostname(node(f"n{number}"), "same") for number in range(7)]

    (finding,) = hostname_findings(nodes)

    assert finding.message.startswith("7 nodes carry kubernetes.io/hostname=same (n0, n1, n2, n3, n4 and 2 more)")
