"""`headroom apply` as a person meets it who reads the plan for a while: what was confirmed is applied, and nothing else."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from reconciler.cli.application import application
from reconciler.model.changes import Apply
from reconciler.model.errors import Stalled
from reconciler.model.refs import ObjectRef
from reconciler.wiring import session
from tests.unit.cli.two_folders import POOL, SHAPE

BUFFER = """
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: NAME, namespace: shop}
spec: {podTemplateRef: {name: web}, replicas: 2}
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Reader:
    """Confirms a plan as often as somebody has something to do while it is read. There is no answer to a further question."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    meanwhile: list[Callable[[Reader], None]] = field(default_factory=list)
    asked: int = 0
    cluster: Any = None

    def apply(self, *words: str) -> int:
        opened = session.open_session

        @contextmanager
        def kept(*values: Any, **more: Any) -> Iterator[session.Session]:
            with opened(*values, **more) as made:
                self.cluster = made.cluster
                yield made

        def confirm(_question: str, *, abort: bool) -> None:
            assert abort
            self.asked += 1
            if not self.meanwhile:
                raise click.Abort
            self.meanwhile.pop(0)(self)

        self.monkeypatch.setattr(session, "open_session", kept)
        self.monkeypatch.setattr(click, "confirm", confirm)
        self.monkeypatch.setattr(sys, "stdin", Terminal())
        self.monkeypatch.setenv("HOME", str(self.folder))
        arguments = ["apply", "--repo", str(self.folder), "--cluster", "embedded", *words]
        return int(application.main(arguments, standalone_mode=False))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def has(self, kind: str, name: str) -> bool:
        return any((ref.kind, ref.name) == (kind, name) for ref in self.cluster.view().objects)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader(tmp_path, monkeypatch)
    made.write("pool.yaml", POOL)
    made.write("shape.yaml", SHAPE)
    made.write("web.yaml", BUFFER.replace("NAME", "web"))
    return made


def nothing(_reader: Reader) -> None:
    """Nobody does anything."""


def edit(reader: Reader) -> None:
    """The working tree has another buffer, and a pool less."""
    reader.write("late.yaml", BUFFER.replace("NAME", "late"))


def take_a_name(reader: Reader) -> None:
    """Somebody makes an object in the cluster that the plan would have created."""
    manifest = yaml.safe_load(POOL) | {"metadata": {"name": "general", "labels": {"of": str(reader.asked)}}}
    manifest["spec"]["limits"] = {"cpu": str(100 * reader.asked)}
    reader.cluster.write(Apply(ObjectRef("karpenter.sh", "NodePool", "", "general"), manifest, force=True))


@pytest.mark.parametrize(
    "meanwhile",
    [[nothing], [edit], [take_a_name, nothing], [take_a_name, edit], [take_a_name, take_a_name, nothing]],
    ids=lambda steps: ", ".join(step.__name__ for step in steps),
)
def test_what_was_confirmed_is_applied_and_what_differs_is_asked_again(
    reader: Reader, capsys: pytest.CaptureFixture[str], meanwhile: list[Callable[[Reader], None]]
) -> None:
    questions = len(meanwhile)
    reader.meanwhile = list(meanwhile)
    assert reader.apply() == 0
    assert reader.asked == questions
    told = capsys.readouterr()
    assert told.out.count("Plan for ") == questions
    assert told.err.count("the plan has changed meanwhile") == questions - 1
    assert reader.has("NodePool", "general")
    assert reader.has("CapacityBuffer", "web")
    assert not reader.has("CapacityBuffer", "late"), "nobody has seen it"


def test_whoever_does_not_agree_to_the_changed_plan_gets_nothing_applied(reader: Reader) -> None:
    reader.meanwhile = [take_a_name]
    with pytest.raises(click.Abort):
        reader.apply()
    assert reader.asked == 2
    assert not reader.has("CapacityBuffer", "web")


def test_nobody_is_asked_with_yes(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    assert reader.apply("--yes") == 0
    assert reader.asked == 0
    assert reader.has("CapacityBuffer", "web")
    assert capsys.readouterr().out.count("Plan for ") == 1


@pytest.mark.parametrize("words", [(), ("--yes",)], ids=["asking", "yes"])
def test_while_headroom_is_suspended_the_plan_is_shown_and_applying_it_fails(
    reader: Reader, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """It asked, applied nothing, and exited with 0."""
    (settings := reader.folder.parent / "settings.yaml").write_text("suspend: true\n")
    with pytest.raises(Stalled, match="headroom is suspended"):
        reader.apply(*words, "--config", str(settings))
    assert reader.asked == 0
    assert not reader.has("CapacityBuffer", "web")
    assert "NodePool/general: create" in capsys.readouterr().out
    for file in reader.folder.glob("*.yaml"):
        file.unlink()
    assert reader.apply(*words, "--config", str(settings)) == 0, "there is nothing to apply"
