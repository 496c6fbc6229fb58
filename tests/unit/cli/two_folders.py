"""Two folders of documents that are compared, or one that is planned, on a snapshot of a small cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from reconciler.cli.application import application
from tests import manifests
from tests.builders import node_manifest, type_in_a_catalog
from tests.manifests import pod_template, schedule, snapshot_in

Document = dict[str, Any]
NOW = "2026-11-22T12:00:00Z"
CATALOGUE = [type_in_a_catalog("m-8x", {"cpu": "8", "memory": "32Gi", "pods": "110"}, 0.4)]
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: "400"}
  disruption: {consolidateAfter: 1m, budgets: [{nodes: "10%"}]}
  template:
    spec:
      expireAfter: 720h
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
"""
SHAPE = pod_template("web", 'cpu: "1", memory: 1Gi')
REQUEST = manifests.request()


def office(peak: int) -> str:
    """A schedule: 3 replicas, and more in the hours of an office in Berlin."""
    days = 'weekdays: "Mon,Tue,Wed,Thu,Fri"'
    return schedule("office", peak, f"{days}, hours: 8", f"{days}, hours: 18", default=3, zone="Europe/Berlin")


def buffer(size: int = 20, *, template: str = "web", **marks: str) -> str:
    return manifests.buffer("web", f"replicas: {size}", of=f"podTemplateRef: {{name: {template}}}", **marks)


START = {"pool.yaml": POOL, "shape.yaml": SHAPE, "web.yaml": buffer()}


def node(name: str, pool: str = "", *, cpu: str = "8") -> Document:
    """A ready node of 32 GiB; in a NodePool one of the catalog's type, registered and initialized."""
    return node_manifest(name, {"cpu": cpu, "memory": "32Gi", "pods": "110"}, pool=pool, of_type="m-8x")


@dataclass
class Folders:
    """Two folders and a snapshot of a cluster, which has nothing but a catalog of one type at $0.40 an hour with 8 cores."""

    root: Path
    lists: dict[str, list[Document]] = field(default_factory=dict)
    catalog: list[Document] = field(default_factory=lambda: CATALOGUE)

    def snapshot(self) -> str:
        """The cluster as it is now."""
        return snapshot_in(self.root / "snapshot", self.lists, self.catalog)

    def written(self, name: str, files: Mapping[str, str]) -> str:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.rglob("*.yaml"):
            old.unlink()
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return str(folder)

    def plan(self, files: Mapping[str, str], *words: str) -> Document:
        """What `headroom plan --output json` prints."""
        found: Document = json.loads(self.plan_text(files, "--output=json", *words))
        return found

    def plan_text(self, files: Mapping[str, str], *words: str) -> str:
        where = ("--repo", self.written("planned", files), f"--cluster={self.snapshot()}", f"--now={NOW}")
        done = CliRunner().invoke(application, ["plan", *where, *words], standalone_mode=False)
        assert done.return_value in {0, 1}, done.output
        return done.stdout

    def diff(self, after: Mapping[str, str], *words: str, before: Mapping[str, str] = START, now: str = NOW) -> Result:
        snapshot = self.snapshot()
        sides = (self.written("before", before), self.written("after", after))
        return CliRunner().invoke(
            application,
            ["diff", *sides, f"--cluster={snapshot}", f"--now={now}", *words],
            standalone_mode=False,
        )

    def document(
        self, after: Mapping[str, str], *words: str, before: Mapping[str, str] = START, now: str = NOW
    ) -> Document:
        done = self.diff(after, "--output=json", *words, before=before, now=now)
        assert done.return_value in {0, 1, 3}, done.output
        found: Document = json.loads(done.stdout)
        return found
