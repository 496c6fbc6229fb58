"""Two daemons on one cluster: each object has one owner, a folder has one inventory, and a second writer loses nothing of the first's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.catalog.observed import ClusterCatalog
from reconciler.cluster.apply import InventoryParent, inventory_in, parent_manifest
from reconciler.cycle import Cycle
from reconciler.model.changes import Apply, Outcome
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.remembered import Inventory
from reconciler.model.view import ClusterView
from reconciler.settings.settings import InventorySettings, Settings
from reconciler.stages.state import PassResult
from reconciler.wiring.session import make_cycle
from tests import manifests
from tests.fakes.embedded import SMALL, Sandbox, node_pool, pool_ref
from tests.fakes.source import FakeSource
from tests.unit.stages.test_removals import files


def pool(**marks: str) -> dict[str, str]:
    return {"pool.yaml": manifests.node_pool("shared", prune="true", **marks)}


class SeenBy:
    """The sandbox's cluster, with the inventory of one daemon in its view."""

    def __init__(self, sandbox: Sandbox, parent: InventoryParent) -> None:
        self._cluster, self._parent = sandbox.cluster, parent

    def view(self) -> ClusterView:
        view = self._cluster.view()
        own = frozenset(
            ref for ref, live in view.objects.items() if labels(live.body).get(PART_OF_LABEL) == self._parent.id
        )
        there = self._cluster.get(self._parent.ref)
        inventory = Inventory()
        if there is not None:
            metadata = there["metadata"]
            inventory = inventory_in(metadata["annotations"], there.get("data") or {}, metadata["resourceVersion"])
        return replace(view, inventory=replace(inventory, members=own))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def labels(body: Any) -> dict[str, str]:
    found: dict[str, str] = (body.get("metadata") or {}).get("labels") or {}
    return found


class Daemon:
    def __init__(self, sandbox: Sandbox, tree: dict[str, str], **settings: Any) -> None:
        self.sandbox, self.source = sandbox, FakeSource(tree)
        made = Settings(**settings)
        seen: Any = SeenBy(sandbox, InventoryParent(made.inventory.namespace, made.inventory.name))
        self.cycle: Cycle = make_cycle(
            made, source=self.source, cluster=seen, catalog=ClusterCatalog("embedded"), clock=sandbox.clock
        )

    def passes(self, count: int = 1) -> PassResult:
        for _ in range(count):
            result = self.cycle.run("test")
            self.sandbox.wait(10)
        return result


def two(first: dict[str, str], second: dict[str, str]) -> tuple[Daemon, Daemon, Sandbox]:
    sandbox = Sandbox(instance_types=(SMALL,))
    sandbox.cluster.apply(node_pool(consolidate_after="30s"))
    other = InventorySettings(name="team-b")
    return Daemon(sandbox, first), Daemon(sandbox, second, inventory=other), sandbox


def owned_elsewhere(result: PassResult) -> list[str]:
    """About the NodePool. The repositories share a PodTemplate too."""
    found = (item for item in result.required_plan.findings if item.ref == pool_ref("shared"))
    return [item.message for item in found if item.code == "owned-elsewhere"]


def test_an_object_that_two_declare_has_the_first_as_its_owner_and_the_second_says_so() -> None:
    first, second, _ = two(pool(), pool())
    first.passes(2)
    told = second.passes(2)
    assert owned_elsewhere(told) == [
        "belongs to the inventory headroom-system/headroom: this one neither changes nor deletes it"
    ]
    again = first.passes()
    assert again.change_set is not None
    assert again.change_set.results == (), "nothing flips"
    assert owned_elsewhere(again) == [
        "the repository of the inventory headroom-system/team-b declares it too: it is applied from here"
    ]


def test_an_owner_that_no_longer_declares_a_shared_pool_does_not_delete_it() -> None:
    """With prune "true" its five nodes went, though the other repository declared it."""
    first, second, sandbox = two(pool() | files(web=1), pool() | files(api=1))
    first.passes(2)
    second.passes(2)
    first.source.commit(files(web=1))
    left = first.passes(3)
    assert sandbox.cluster.get(pool_ref("shared")) is not None
    (note,) = left.required_plan.notes
    assert "no longer declared, but stays: the repository of headroom-system/team-b declares it too" in note
    second.source.commit(pool(adopt="headroom-system/headroom") | files(api=1))
    second.passes(2)
    assert first.passes(2).required_plan.notes == ()
    assert owned_elsewhere(second.passes()) == []
    second.source.commit(files(api=1))
    second.passes(3)
    assert sandbox.cluster.get(pool_ref("shared")) is None, "its new owner deletes it, and no mark is left to keep it"


def test_a_mark_is_taken_back_when_the_second_no_longer_declares_the_object() -> None:
    first, second, sandbox = two(pool() | files(web=1), pool() | files(api=1))
    first.passes(2)
    second.passes(2)
    second.source.commit(files(api=1))
    second.passes(2)
    assert owned_elsewhere(first.passes()) == []
    first.source.commit(files(web=1))
    first.passes(3)
    assert sandbox.cluster.get(pool_ref("shared")) is None


def test_two_daemons_make_and_hold_the_same_placeholders() -> None:
    """Each reads the buffers of both from the cluster, and names a NodeClaim after what it holds."""
    first, second, sandbox = two(files(web=2), files(api=3))
    for _ in range(3):
        first.passes()
        second.passes()
    assert len(sandbox.cluster.view().node_claims) == 5
    for daemon in (first, second, first):
        quiet = daemon.passes()
        assert quiet.change_set is not None
        assert quiet.change_set.results == ()


def test_an_inventory_that_was_renamed_says_whose_objects_there_are() -> None:
    first, second, _ = two(pool(), files(web=1))
    first.passes(2)
    (finding,) = [item for item in second.passes().required_plan.findings if item.code == "inventory-is-new"]
    assert finding.message == (
        "the inventory headroom-system/team-b is new, and 1 object belongs to headroom-system/headroom"
    )
    assert not [item for item in second.passes().required_plan.findings if item.code == "inventory-is-new"]


def test_a_second_folder_with_the_same_inventory_writes_nothing() -> None:
    sandbox = Sandbox(instance_types=(SMALL,))
    sandbox.cluster.apply(node_pool())
    production = Daemon(sandbox, files(web=1), path="clusters/production")
    staging = Daemon(sandbox, files(api=1), path="clusters/staging")
    production.passes(3)
    refused = staging.passes(3)
    assert refused.failure is not None
    assert "is that of clusters/production" in refused.failure.message
    codes = [item.code for item in refused.required_plan.findings]
    assert "inventory-of-another-path" in codes
    again = production.passes()
    assert again.change_set is not None
    assert again.change_set.results == ()


def test_a_second_writer_of_the_inventory_loses_nothing() -> None:
    """`headroom apply` beside the daemon erased the record of a request, which then ran once more."""
    sandbox = Sandbox()
    parent = InventoryParent()

    def write(memory: dict[str, Any], version: str = "") -> Outcome:
        manifest = parent_manifest(parent, Inventory(records=memory, version=version))
        return sandbox.write(Apply(parent.ref, manifest, force=True)).outcome

    sandbox.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "headroom-system"}})
    assert write({"requests": {"train": "provisioned"}}) is Outcome.APPLIED
    read = sandbox.cluster.view().inventory.version
    assert write({"requests": {"train": "provisioned", "sweep": "provisioned"}}, read) is Outcome.APPLIED
    assert write({"requests": {"train": "provisioned"}}, read) is Outcome.FAILED, "it was read before"
    assert "sweep" in sandbox.cluster.view().inventory.records["requests"]
