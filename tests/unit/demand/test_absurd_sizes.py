"""One slip of the hand must not stop every pass."""

import pytest

from reconciler.demand.buffers import MOST_CHUNKS, buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.model.declared import Declared
from reconciler.model.view import ClusterView
from tests.builders import buffer, deployment


@pytest.mark.parametrize("replicas", [MOST_CHUNKS + 1, 2_147_483_647, 10**400])
def test_no_more_is_placed_than_a_cluster_can_have_pods(replicas: int) -> None:
    declared = Declared(buffers=(buffer(replicas=replicas),), workloads=(deployment(),))
    (found,), findings = buffer_demands(declared, ClusterView(), dialect=Dialect.KARPENTER)
    assert found.desired == replicas
    assert [group.count for group in found.groups] == [MOST_CHUNKS]
    assert [finding.code for finding in findings] == ["buffer-too-large"]
    assert all(len(finding.message) < 200 for finding in findings)
    assert len(found.conditions[0].message) < 100


def test_the_largest_possible_size_is_taken() -> None:
    declared = Declared(buffers=(buffer(replicas=MOST_CHUNKS),), workloads=(deployment(),))
    (found,), findings = buffer_demands(declared, ClusterView(), dialect=Dialect.KARPENTER)
    assert [group.count for group in found.groups] == [MOST_CHUNKS]
    assert findings == ()
