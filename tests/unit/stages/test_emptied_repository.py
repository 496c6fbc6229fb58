"""A commit that leaves no document: nothing is deleted by it, before and after a restart, unless that is allowed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.catalog.observed import ClusterCatalog
from reconciler.settings.settings import Settings
from reconciler.stages.state import PassResult
from reconciler.wiring.cycle import make_cycle
from tests.fakes.embedded import Sandbox, node_pool
from tests.fakes.source import FakeSource

TEMPLATE = """\
apiVersion: v1
kind: PodTemplate
metadata: {name: NAME, namespace: shop}
template:
  spec:
    containers: [{name: main, image: pause}]
"""
FILES = {f"{name}.yaml": TEMPLATE.replace("NAME", name) for name in "abcdefghijk"}
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


class Shop:
    def __init__(self, *, allow_empty: bool = False) -> None:
        self.sandbox = Sandbox()
        self.sandbox.cluster.apply(node_pool())
        self.source = FakeSource(FILES)
        self._settings = Settings(allow_empty=allow_empty)
        self.restart()

    def restart(self) -> None:
        self.cycle = make_cycle(
            self._settings,
            source=self.source,
            cluster=self.sandbox.cluster,
            catalog=ClusterCatalog("embedded"),
            clock=self.sandbox.clock,
        )

    def passes(self, seconds: int = 60, *, every: int = 10) -> PassResult:
        for _ in range(seconds // every):
            result = self.cycle.run("commit")
            assert result.failure is None, result.failure
            self.sandbox.wait(every)
        return result

    def left(self) -> int:
        return len(self.sandbox.cluster.view().inventory.members)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    "files", [EMPTY, {}, {"others.yaml": OTHERS}], ids=["no document", "no file", "documents of others"]
)
def test_it_stalls(files: dict[str, str], restarted: bool) -> None:  # noqa: FBT001 - a case
    shop = Shop()
    shop.passes()
    shop.source.commit(files)
    if restarted:
        shop.restart()

    result = shop.passes(seconds=7200, every=120)

    assert shop.left() == len(FILES)
    assert result.tree is not None
    assert result.tree.stalled is not None
    assert result.tree.stalled[0] == "NoDocuments"
    assert "allowEmpty" in result.required_plan.blocked[0]
    shop.source.commit(FILES)
    assert not shop.passes().required_plan.blocked


def test_where_it_is_allowed_a_share_goes_within_each_hour() -> None:
    shop = Shop(allow_empty=True)
    shop.passes()
    shop.source.commit(EMPTY)
    counts = []
    for _ in range(4):
        shop.passes(seconds=300)
        counts.append(shop.left())
        shop.sandbox.wait(timedelta(hours=1).total_seconds())
    assert counts == [6, 1, 0, 0]


def test_a_folder_in_which_there_never_was_anything_is_no_stall() -> None:
    shop = Shop()
    shop.source.commit({})
    result = shop.passes()
    assert result.tree is not None
    assert result.tree.stalled is None
