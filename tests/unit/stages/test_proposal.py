"""What is proposed instead of written: every document that should be in force, and no deletion on the strength of half a read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.catalog.observed import ClusterCatalog
from reconciler.model.refs import ObjectRef
from reconciler.model.source import SourceTree
from reconciler.ports import Proposals, ProposedPlan
from reconciler.settings.settings import Settings
from reconciler.stages.writes import file_of
from reconciler.wiring.cycle import make_cycle
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload
from tests.fakes.source import FakeSource

REVISION = "main@sha1:" + "a" * 40


class Desk(Proposals):
    """What was proposed last, and how often. keep: what the proposal said of files."""

    def __init__(self) -> None:
        self.count = 0
        self.documents: dict[str, Any] = {}
        self.keep: Callable[[str], bool] = lambda _name: False
        self.revision = ""
        self.waiting: tuple[str, ...] = ()

    def propose(self, rendered: Mapping[str, str], *, keep: Callable[[str], bool], state: ProposedPlan) -> None:
        self.count += 1
        self.documents = {name: yaml.safe_load(text) for name, text in rendered.items()}
        self.keep = keep
        self.revision = state.revision
        self.waiting = state.waiting


class Repository(FakeSource):
    """A repository at a commit, which the test may break."""

    def __init__(self, *documents: Mapping[str, Any]) -> None:
        super().__init__({f"{number}.yaml": yaml.safe_dump(each) for number, each in enumerate(documents)})
        self.tree = replace(super().read(), revision=REVISION)

    def read(self) -> SourceTree:
        return self.tree


class World:
    """A cluster with a NodePool and a workload, a repository that declares a buffer too, and passes that propose."""

    def __init__(self) -> None:
        self.sandbox = Sandbox()
        for document in (node_pool(), workload(replicas=0)):
            self.sandbox.cluster.apply(document)
        self.repository = Repository(node_pool(), buffer(replicas=3))
        self.desk = Desk()
        self.cycle = make_cycle(
            Settings(),
            source=self.repository,
            cluster=self.sandbox.cluster,
            catalog=ClusterCatalog("embedded"),
            clock=self.sandbox.clock,
            proposals=self.desk,
        )

    def merge(self) -> None:
        """Somebody merges the proposal, and Argo CD applies it."""
        for document in self.desk.documents.values():
            self.sandbox.cluster.apply(document, manager="argocd")
        self.sandbox.wait()


@pytest.fixture
def world() -> World:
    return World()


def test_all_that_should_be_in_force_is_proposed_and_nothing_is_written(world: World) -> None:
    result = world.cycle.run("tick")
    assert result.failure is None
    assert [document["kind"] for document in world.desk.documents.values()] == ["CapacityBuffer", "NodePool"]
    assert world.desk.revision == REVISION
    # A NodeClaim names its NodePool's uid and hash, which are known once that is applied.
    assert result.change_set is not None
    assert [each.message for each in result.change_set.results] == ["waits until NodePool general is applied"]
    (waiting,) = world.desk.waiting
    assert waiting.endswith(" is planned and has no document yet: it waits until NodePool general is applied")
    view = world.sandbox.wait()
    assert view.node_claims == ()
    assert not [ref for ref in view.objects if ref.kind == "CapacityBuffer"]


def test_once_somebody_applies_it_the_node_claims_follow_and_those_that_stand_stay_in_git(world: World) -> None:
    world.cycle.run("tick")
    world.merge()
    world.cycle.run("tick")
    (claim,) = (name for name in world.desk.documents if name.startswith("nodeclaim."))
    assert {document["kind"] for document in world.desk.documents.values()} == {
        "CapacityBuffer",
        "NodeClaim",
        "NodePool",
    }

    world.merge()
    (standing,) = world.sandbox.wait().node_claims
    world.cycle.run("tick")
    assert claim == f"nodeclaim.{standing.name}.yaml"
    assert claim not in world.desk.documents  # there is nothing to write of it
    assert world.desk.keep(claim)  # but without its file whoever applies would delete it
    assert not world.desk.keep("nodeclaim.of-somebody-else.yaml")
    assert not world.desk.keep("capacitybuffer.shop.other.yaml")  # what is declared no longer goes


@pytest.mark.parametrize(
    "broken",
    [
        {"revision": None},
        {"stalled": ("GitOperationFailed", "the server is away")},
        {"rewound": True},
    ],
    ids=["files as they stand", "stalled", "rewound"],
)
def test_a_repository_that_could_not_be_read_as_a_whole_proposes_nothing(world: World, broken: dict[str, Any]) -> None:
    world.repository.tree = replace(world.repository.tree, **broken)
    result = world.cycle.run("tick")
    assert world.desk.count == 0
    assert result.change_set is not None
    assert world.sandbox.wait().node_claims == ()


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web"), "capacitybuffer.shop.web.yaml"),
        (ObjectRef("karpenter.sh", "NodePool", "", "general.eu"), "nodepool.general.eu.yaml"),
        (ObjectRef("rbac.authorization.k8s.io", "ClusterRole", "", "system/x"), "clusterrole.system%2Fx.yaml"),
    ],
)
def test_each_object_has_a_file_of_its_own(ref: ObjectRef, name: str) -> None:
    assert file_of(ref) == name


@pytest.mark.parametrize("merged", [False, True])
def test_a_node_pool_that_no_template_can_be_rendered_for_holds_up_no_other_document(
    world: World, *, merged: bool
) -> None:
    world.cycle.run("test")
    if merged:
        world.merge()
    tree = world.repository.tree
    world.repository.tree = replace(tree, files={**tree.files, "templates/nodepool.yaml.j2": b"{{ nothing }}"})
    result = world.cycle.run("test")
    assert result.failure is None, result.failure
    assert world.desk.count == 2
    assert "capacitybuffer.shop.web.yaml" in world.desk.documents
    assert "nodepool.general.yaml" not in world.desk.documents
    assert world.desk.keep("nodepool.general.yaml"), "the last good document stays in Git"
    assert result.change_set is not None
    assert [failure.write.ref.name for failure in result.change_set.failures].count("general") == 1
