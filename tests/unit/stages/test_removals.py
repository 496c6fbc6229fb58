"""What a commit removes goes slowly when it is much; a commit that leaves no document removes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.changes import DemandOutcome
from reconciler.model.findings import Severity
from reconciler.stages.state import PassResult
from tests.fakes.embedded import SMALL, GitSandbox, node_pool
from tests.fakes.requests import ATOMIC
from tests.manifests import buffer, pod_template, request

# What a commit removes goes slowly when it is much, over hours and restarts, and says so; what is small goes at once.

SHAPE = pod_template("shape", "cpu: 1500m")
BY_SHAPE = "podTemplateRef: {name: shape}"
TOTAL = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: total, namespace: shop}
spec:
  targetRef: {apiVersion: karpenter.sh/v1, kind: NodePool, name: general}
  capacity: {nodeClass: {totalCpu: 4500m, totalMem: 3Gi, perChunkResources: {cpu: 1500m, memory: 1Gi}}}
"""


def files(**counts: int) -> dict[str, str]:
    """A file with these buffers, whose every chunk needs a node of its own."""
    text = "".join(buffer(name, f"replicas: {count}", of=BY_SHAPE) for name, count in counts.items())
    return {"shape.yaml": SHAPE, "buffers.yaml": text}


class Shop(GitSandbox):
    def __init__(self, **counts: int) -> None:
        super().__init__(files(**counts), pool=node_pool(consolidate_after="30s"), instance_types=(SMALL,))
        self.passes(60)
        assert self.nodes() == sum(counts.values())

    def nodes(self) -> int:
        return len(self.node_names())


def outcome(result: PassResult, name: str) -> DemandOutcome:
    return next(item for item in result.required_plan.demands if item.demand.ref.name == name)


def test_a_buffer_of_seven_nodes_that_vanishes_is_let_down_two_nodes_an_hour() -> None:
    shop = Shop(web=7)
    shop.source.commit(files())
    result = shop.passes(600)
    assert shop.nodes() == 5
    (told,) = [item for item in outcome(result, "web").conditions if item.type == "Removal"]
    assert "at most 2 of 2 objects and 2 of 7 held nodes (2 so far) go within an hour; the next by" in told.message
    shop.restart()
    shop.passes(2400)
    assert shop.nodes() == 5, "passes and restarts do not renew it"
    counts = []
    for _ in range(4):
        shop.passes(3600, every=120)
        counts.append(shop.nodes())
    assert counts == [3, 1, 0, 0]


def test_what_a_person_allows_goes_at_once() -> None:
    shop = Shop(web=7)
    shop.source.commit(files())
    shop.source._tree = replace(shop.source._tree, removals_allowed=True)
    shop.passes(120)
    assert shop.nodes() == 0


def test_a_folder_with_a_buffer_and_its_template_goes_as_slowly_as_the_buffer() -> None:
    """The template went at once, and with it all nodes: a buffer without its template is not ready."""
    shop = Shop(web=7)
    shop.source.commit({"other.yaml": files(api=1)["buffers.yaml"].replace("name: shape", "name: other")})
    result = shop.passes(600)
    assert shop.nodes() == 5
    assert "PodTemplate/shop/shape is no longer declared, but stays: CapacityBuffer/shop/web refers to it" in (
        result.required_plan.notes
    )
    for _ in range(4):
        shop.passes(3600, every=120)
    assert shop.nodes() == 0
    assert not [ref for ref in shop.cluster.view().objects if ref.name == "shape"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("podTemplateRef: {name: shpae}", "PodTemplate/shop/shpae does not exist"),
        ("podTemplateRef: ", "it refers to nothing"),
        ("scalableRef: {apiGroup: apps, kind: Deployment, name: web}", "Deployment/shop/web does not exist"),
        ("scalableRef: {apiGroup: apps, kind: Deploymnet, name: web}", "apps has no kind Deploymnet"),
        (
            "scalableRef: {apiGroup: aps, kind: Deployment, name: web}",
            "Deployment/shop/web of group aps does not exist",
        ),
    ],
)
def test_a_buffer_that_refers_to_nothing_any_more_stays_as_it_was(written: str, said: str) -> None:
    """A misspelt name released all of its nodes at once."""
    shop = Shop(web=3)
    text = files(web=3)["buffers.yaml"]
    shop.source.commit({"shape.yaml": SHAPE, "buffers.yaml": text.replace(BY_SHAPE, written)})
    for _ in range(2):
        result = shop.passes(120)
        (found,) = [item for item in result.required_plan.findings if item.severity is Severity.ERROR]
        assert found.message.startswith(said)
        assert shop.nodes() == 3
        shop.restart()
    there = {"shape.yaml": SHAPE + pod_template("shpae", "cpu: 1500m")}
    shop.source.commit({**there, "buffers.yaml": text.replace("name: shape", "name: shpae")})
    result = shop.passes(120)
    assert not [item for item in result.required_plan.findings if item.code == "reference-lost"]
    assert shop.nodes() == 3


def test_a_total_whose_node_pool_is_misspelt_stays_as_it_was() -> None:
    shop = Shop(web=1)
    shop.source.commit(files(web=1) | {"total.yaml": TOTAL})
    shop.passes(60)
    assert shop.nodes() == 4
    shop.source.commit(files(web=1) | {"total.yaml": TOTAL.replace("name: general", "name: genral")})
    result = shop.passes(120)
    (found,) = [item for item in result.required_plan.findings if item.code == "reference-lost"]
    assert (found.path, found.message.partition(",")[0]) == ("spec.targetRef.name", "NodePool/genral does not exist")
    assert shop.nodes() == 4


# A commit that leaves no document: nothing is deleted by it, before and after a restart, unless that is allowed.

FILES = {f"{name}.yaml": pod_template(name) for name in "abcdefghijk"}
OTHERS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}
"""
EMPTY = {"README.md": "", "a.yaml": "# nothing left\n"}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    "files", [EMPTY, {}, {"others.yaml": OTHERS}], ids=["no document", "no file", "documents of others"]
)
def test_it_stalls(files: dict[str, str], restarted: bool) -> None:  # noqa: FBT001 - a case
    shop = GitSandbox(FILES)
    shop.passes()
    shop.source.commit(files)
    if restarted:
        shop.restart()

    result = shop.passes(seconds=7200, every=120)

    assert len(shop.cluster.view().inventory.members) == len(FILES)
    assert result.tree is not None
    assert result.tree.stalled is not None
    assert result.tree.stalled[0] == "NoDocuments"
    assert "allowEmpty" in result.required_plan.blocked[0]
    shop.source.commit(FILES)
    assert not shop.passes().required_plan.blocked


def test_a_folder_in_which_there_never_was_anything_is_no_stall() -> None:
    shop = GitSandbox(FILES)
    shop.source.commit({})
    result = shop.passes()
    assert result.tree is not None
    assert result.tree.stalled is None


def test_nothing_is_found_about_an_object_that_the_same_pass_deletes() -> None:
    shop = Shop(web=1)
    shop.source.commit(files(web=1) | {"api.yaml": buffer("api", "replicas: 1", of="podTemplateRef: {name: other}")})
    found = [(item.code, item.ref.name) for item in shop.passes(60).required_plan.findings if item.ref is not None]
    assert ("target-not-found", "api") in found
    shop.source.commit(files(web=1))
    plan = shop.cycle.plan().required_plan
    assert "CapacityBuffer/shop/api" in {str(change.ref) for change in plan.objects}
    assert not [item for item in plan.findings if item.ref is not None and item.ref.name == "api"]


def test_a_request_says_that_it_waits_to_be_deleted_as_long_as_that_is_so() -> None:
    """Its status had that twice from the second pass on, which an API server refuses."""
    asked = {f"r{number}.yaml": request(f"r{number}", 1, template="shape", of_class=ATOMIC) for number in range(7)}
    shop = GitSandbox({"shape.yaml": SHAPE, **asked}, instance_types=(SMALL,))
    shop.passes(10)
    shop.source.commit({"shape.yaml": SHAPE, "r0.yaml": asked["r0.yaml"]})
    result = shop.passes(20)
    waits = result.required_plan.waiting.refs[0]
    assert "Removal" in [item.type for item in outcome(result, waits.name).conditions]
    assert result.change_set is not None
    assert result.change_set.failures == ()
    shop.source.commit({"shape.yaml": SHAPE, **asked})
    assert "Removal" not in [item.type for item in outcome(shop.passes(10), waits.name).conditions]
