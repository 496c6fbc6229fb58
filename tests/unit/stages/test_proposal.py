"""What a pass proposes, what templates hold up, and why a pass was made."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.daemon.daemon import Daemon, Listeners
from reconciler.model.changes import Apply, Outcome
from reconciler.model.declared import SourceTree
from reconciler.model.refs import ObjectRef
from reconciler.ports import PassResult, Proposals, ProposedPlan
from reconciler.render.templates import RenderProcess
from reconciler.report.explanation import explanation, explanation_text
from reconciler.report.plan.words import summary
from reconciler.settings.load import load_settings
from reconciler.stages.planning import file_of
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.metrics import Metrics
from reconciler.timetable.agenda import Trigger
from reconciler.wiring.session import Session, open_session
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload
from tests.fakes.source import FakeSource

# What is proposed instead of written: every document that should be in force, and no deletion on the strength of half a read.

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
        self.cycle = self.sandbox.new_cycle(self.repository, proposals=self.desk)

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
    [{"revision": None}, {"stalled": ("GitOperationFailed", "the server is away")}, {"rewound": True}],
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


# Passes over a repository with a template that hangs: its documents are refused, and everything else goes on.

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_render_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one test, and a template has less time in it, so that nobody waits long for one that hangs."""
    monkeypatch.setattr("reconciler.render.templates.RenderProcess", RenderProcess)
    monkeypatch.setattr("reconciler.render.templates.SECONDS", 0.3)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "repository")
    (tmp_path / "repository" / "templates").mkdir()
    return tmp_path / "repository"


@pytest.fixture
def session(repository: Path) -> Iterator[Session]:
    flags = {
        "repository": str(repository),
        "path": "clusters/production",
        "cluster": f"embedded:{repository / 'snapshots' / 'production'}",
    }
    with open_session(
        load_settings(None, environment={}, flags=flags), now=NOW, progress=lambda _stage: None
    ) as opened:
        yield opened


def test_only_what_the_template_would_make_is_held_up(repository: Path, session: Session) -> None:
    (repository / "templates" / "nodeclaim.yaml.j2").write_text("\n{% if 3 ** (10 ** 9) %}{% endif %}")
    for _ in range(2):  # Karpenter must have taken up the NodePools before NodeClaims are made
        result = session.cycle.run("test")
        assert result.failure is None
        found = [finding for finding in result.required_plan.findings if finding.code == "template-failed"]
        assert [str(finding.position) for finding in found] == ["templates/nodeclaim.yaml.j2:1:1"]
    assert result.change_set is not None
    claims = [
        item
        for item in result.change_set.results
        if isinstance(item.write, Apply) and item.write.ref.kind == "NodeClaim"
    ]
    assert {item.outcome for item in claims} == {Outcome.REFUSED}
    applied = {ref.kind for ref in session.cluster.view().objects}
    assert {"NodePool", "CapacityBuffer"} <= applied


def test_what_no_template_can_be_rendered_for_is_not_planned(repository: Path, session: Session) -> None:
    session.cycle.run("test")  # Karpenter has taken up the NodePools
    before = session.cycle.plan().required_plan
    (repository / "templates" / "nodeclaim.yaml.j2").write_text("\n{{ nothing }}")
    plan = session.cycle.plan().required_plan
    assert before.node_claims.create
    assert (plan.node_claims.create, plan.cost.per_hour_after) == ((), plan.cost.per_hour_before)
    assert "create" not in summary(plan)
    short = explanation_text(explanation(plan, "CapacityBuffer/shop/web"))
    assert "template failed (" in short
    assert "nodeclaim.yaml.j2 (from the repository), line 2: 'nothing' is undefined" in short
    done = session.cycle.run("test")
    assert done.change_set is not None
    assert {item.outcome for item in done.change_set.failures} == {Outcome.REFUSED}
    assert not done.settled


def test_nodes_of_a_node_pool_that_cannot_be_rendered_wait_for_it(repository: Path, session: Session) -> None:
    template = repository / "templates" / "nodepool.yaml.j2"
    template.write_text("{{ nothing }}")
    plan = session.cycle.plan().required_plan
    assert (plan.node_claims.create, [ref for ref in plan.objects if ref.ref.kind == "NodePool"]) == ((), [])
    assert any(outcome.unplaced for outcome in plan.demands)


def test_once_the_template_is_mended_nodes_are_made(repository: Path, session: Session) -> None:
    template = repository / "templates" / "nodeclaim.yaml.j2"
    template.write_text("{{ nothing }}")
    session.cycle.run("test")
    template.write_text((EXAMPLES.parent / "templates" / "nodeclaim.yaml.j2").read_text())
    result = session.cycle.run("test")
    assert "template-failed" not in {finding.code for finding in result.required_plan.findings}


# Why a pass was made is told with it: in its log line, and in every event about what it did.


class Lines:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **facts: Any) -> None:
        self.told.append((event, facts))

    debug = warning = error = info


def test_the_daemons_first_pass_says_in_log_and_events_that_it_is_the_first() -> None:
    sandbox, log = Sandbox(), Lines()
    for document in (node_pool(), workload(replicas=0), buffer()):
        sandbox.cluster.apply(document)
    cycle = sandbox.new_cycle()
    last = LastPass(cluster="embedded", clock=sandbox.clock, metrics=Metrics(), log=log)

    def heard(trigger: Trigger, result: PassResult) -> None:
        last.observe(trigger.value, result)
        daemon.stop()

    daemon = Daemon(
        run_pass=lambda trigger: cycle.run(trigger.value),
        poll_source=lambda: False,
        clock=sandbox.clock,
        listeners=Listeners(heard),
    )

    assert daemon.run() == 0

    assert [facts["trigger"] for event, facts in log.told if event == "pass"] == ["start"]
    assert any("(trigger: start)" in item.event.message for item in sandbox.cluster.events)
