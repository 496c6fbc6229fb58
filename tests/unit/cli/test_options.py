"""What commands share: instants, progress, the age of a snapshot, a cluster's name, and help that the docs repeat."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from reconciler import stages
from reconciler.cli import options as console
from reconciler.cli.application import COMMANDS, application
from reconciler.cli.options import COMPILING, PHASE_WORDS, TIMED_PHASES, Moment, Progress
from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.snapshot.files import Snapshot, SnapshotCluster
from reconciler.placement.loops import kernel
from reconciler.settings.settings import Settings
from reconciler.wiring.inputs import PublishedCluster, ReportedCluster, reported_cluster
from tests.controlplane.waiting import eventually


def read(words: str) -> datetime:
    return Moment().convert(words, None, None)


@pytest.mark.parametrize(
    "words", ["2026-03-01", "20260301", "2026-03-01T09:30", "2026-03-01 09:30:15", "2026-03-01T09"]
)
def test_what_is_said_to_write_instead_is_accepted(words: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        read(words)
    told = re.fullmatch(r"'.*' has no offset: write (\S+) for UTC, or (\S+)\.", refused.value.message)
    assert told is not None, refused.value.message
    meant = datetime.fromisoformat(words).replace(tzinfo=UTC)
    assert read(told[1]) == meant
    assert read(told[2]) == meant - timedelta(hours=1)


def test_instants_are_read_in_utc() -> None:
    assert read("2026-03-01T09:30:00+01:00") == datetime(2026, 3, 1, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize("name", COMMANDS)
def test_shells_complete_what_names_files(name: str) -> None:
    """With headroom's completion a shell asks headroom alone, and knows no files by itself."""
    command = application.get_command(click.Context(application), name)
    assert command is not None
    context = click.Context(command)
    taken = [each for each in command.params if re.search("PATH|FILE|FOLDER|SUBDIR", each.make_metavar(context))]
    assert [each.name for each in taken if not isinstance(each.type, click.Path)] == []


def test_every_phase_of_a_pass_is_timed_and_has_words() -> None:
    """A stage without them would be missing in `--timings`, and in its total."""
    modules = [import_module(module.name) for module in walk_packages(stages.__path__, f"{stages.__name__}.")]
    phases = {
        vars(found)["phase"]
        for module in modules
        for found in vars(module).values()
        if "phase" in getattr(found, "__dict__", ())
    }
    assert "placement" in phases
    assert {phase for phase in phases if isinstance(phase, str)} == set(TIMED_PHASES)
    assert set(TIMED_PHASES) < set(PHASE_WORDS)


FLOATS = [
    (name, option.opts[0])
    for name in COMMANDS
    if (command := application.get_command(click.Context(application), name)) is not None
    for option in command.params
    if isinstance(option.type, (click.types.FloatParamType, click.FloatRange))
]


@pytest.mark.parametrize(("command", "option"), FLOATS)
@pytest.mark.parametrize("amount", ["nan", "inf", "-inf", "-1", "-0.01", "1e308", "NaN", "infinity"])
def test_an_amount_that_bounds_nothing_is_wrong_usage(command: str, option: str, amount: str) -> None:
    done = CliRunner().invoke(application, [command, f"{option}={amount}"])
    assert done.exit_code == 2
    assert f"Invalid value for '{option}'" in done.output


# What commands say on stderr of a stage that takes long.


def test_compiling_is_named_only_while_a_stage_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "not_cached", ["one before"])
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    told = ""

    def tells(words: str) -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return words in told

    with Progress() as progress:
        progress("placement")
        eventually(lambda: tells(PHASE_WORDS["placement"]), within=20, what="placing is named")
        assert COMPILING not in told
        kernel.not_cached.append("choose")
        eventually(lambda: tells(COMPILING), within=20, what="compiling is named")
    looks: list[float] = []

    def looked() -> float:
        looks.append(time.monotonic())
        return looks[-1]

    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=looked))
    with Progress():  # a daemon whose log is JSON names no stage: it wrote that line every ten seconds for ever
        kernel.not_cached.append("another")
        told, before = "", len(looks)
        eventually(lambda: len(looks) > before + 1, within=20, what="another look at how long it takes")
        assert not tells(COMPILING)


# What reports call a cluster that has no name of its own.


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        ("in-cluster", "./clusters/production/", "production"),
        ("in-cluster", "", "in-cluster"),
        ("kubeconfig:staging", "clusters/production", "kubeconfig:staging"),
    ],
)
def test_the_folder_of_the_manifests_names_it(name: str, path: str, title: str) -> None:
    """It was `in-cluster` for the daemon of every cluster."""
    found = reported_cluster(SnapshotCluster(name, Snapshot), Settings(path=path))
    assert found == ReportedCluster(title)


@pytest.mark.parametrize(
    ("repository", "title"),
    [
        ("https://git.example/platform/capacity.git", "capacity"),
        ("git@git.example:capacity.git", "capacity"),
        ("", Path.cwd().name),
    ],
)
def test_a_published_snapshot_of_a_whole_repository_has_the_repositorys_name(repository: str, title: str) -> None:
    """It was that of the branch, `headroom/snapshot`, for every repository."""
    taken = datetime(2026, 11, 23, tzinfo=UTC)
    cluster = PublishedCluster({}, InventoryParent(), taken=taken, folder="", branch="headroom/snapshot")
    found = reported_cluster(cluster, Settings(repository=repository))
    assert found == ReportedCluster(title, "planned on the snapshot as of 2026-11-23 00:00 UTC")


# Every command has a docs page, and the page shows the very help that the command prints.
#
# Renew the pages with HEADROOM_GOLDEN=write.

PAGES = Path(__file__).resolve().parents[3] / "docs" / "commands"
BLOCK = re.compile(r"```text\n(.*?)```", re.DOTALL)


def help_of(name: str) -> str:
    return CliRunner().invoke(application, [name, "--help"], prog_name="headroom", terminal_width=110).output


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_shows_its_help(name: str) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text()
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        page.write_text(BLOCK.sub(lambda _: f"```text\n{help_of(name)}```", text, count=1))
        text = page.read_text()
    shown = BLOCK.search(text)
    assert shown is not None
    assert shown[1] == help_of(name)


def test_there_are_no_pages_of_other_commands() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(COMMANDS)


@pytest.mark.parametrize("name", ["run", "apply", "snapshot", "release"])
def test_only_clusters_that_a_command_takes_are_named(name: str) -> None:
    assert "snapshot:PATH" not in help_of(name)
    assert "published" not in help_of(name)
