"""`headroom init schedule`: flags and files; `headroom init` beside it is as it was."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from reconciler.cli.application import application
from reconciler.manifests.crds import editor_schema
from reconciler.manifests.repository.declared import read
from reconciler.model.errors import Invalid
from reconciler.model.schedules import Schedule

OFFICE = ("--window", "mon-fri 9-17", "--replicas", "3", "--default", "1", "--timezone", "Europe/Berlin")


def init(*words: str) -> Result:
    return CliRunner().invoke(application, ["init", *words], prog_name="headroom", standalone_mode=False)


def written(text: str) -> Schedule:
    declared = read({"hours.yaml": text.encode()})
    assert declared.findings == ()
    (schedule,) = declared.schedules
    return schedule


def test_flags_alone_are_enough() -> None:
    done = init("schedule", *OFFICE, "--name", "office", "--namespace", "shop", "--lead-time", "10m")
    schedule = written(done.stdout)
    assert (schedule.ref.namespace, schedule.ref.name) == ("shop", "office")
    assert (schedule.timezone, schedule.default_replicas) == ("Europe/Berlin", 1)
    assert [behavior.replicas for behavior in schedule.behaviors] == [3]
    assert "#   headroom.dev/replicas-from: office\n#   headroom.dev/lead-time: 10m\n" in done.stdout
    assert done.stderr == ""


def test_what_it_writes_is_accepted_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "hours.yaml"
    done = init("schedule", *OFFICE, "--output", str(file))
    schema = tmp_path / ".headroom" / "manifests.schema.json"
    assert (done.stdout, done.stderr) == ("", f"Wrote {file} and {schema}. Next: headroom schedule {file}\n")
    runner = CliRunner()
    assert runner.invoke(application, ["validate", str(file)], standalone_mode=False).return_value == 0
    shown = runner.invoke(application, ["schedule", str(file), "--now", "2026-11-23T10:00:00Z"]).stdout
    assert "3 now, 2026-11-23 11:00 CET (10:00 UTC); 1 from Mon 2026-11-23 17:00 CET (16:00 UTC)" in shown


@pytest.mark.parametrize(
    ("folder", "way"),
    [("", ""), ("clusters", "../"), ("clusters/west", "../../"), ("clusters/west/hours", "../../../")],
)
def test_editors_find_the_schema_that_the_repository_has(tmp_path: Path, folder: str, way: str) -> None:
    assert init(str(tmp_path), "--cluster", "embedded", "--name", "west").exit_code == 0
    file = tmp_path / folder / "hours.yaml"
    file.parent.mkdir(exist_ok=True)
    done = init("schedule", *OFFICE, "-o", str(file))
    assert done.stderr == f"Wrote {file}. Next: headroom schedule {file}\n"
    line = file.read_text().partition("\n")[0]
    assert line == f"# yaml-language-server: $schema={way}.headroom/manifests.schema.json"
    assert (file.parent / line.partition("=")[2]).is_file()


def test_where_there_is_no_schema_it_is_written_beside_the_schedule(tmp_path: Path) -> None:
    init("schedule", *OFFICE, "-o", str(tmp_path / "hours.yaml"))
    text = (tmp_path / "hours.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=.headroom/manifests.schema.json\napiVersion: ")
    assert json.loads((tmp_path / ".headroom" / "manifests.schema.json").read_text()) == editor_schema()
    again = init("schedule", *OFFICE, "-o", str(tmp_path / "hours.yaml"))
    assert isinstance(again.exception, Invalid)


def test_a_dash_is_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert init("schedule", *OFFICE, "-o", "-").stdout == init("schedule", *OFFICE).stdout
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "hours.yaml"
    file.write_text("mine")
    assert isinstance(init("schedule", *OFFICE, "-o", str(file)).exception, Invalid)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("number", ["0", "3"])
def test_a_schedule_that_never_changes_anything_is_written_with_a_warning(number: str) -> None:
    words = ("--window", "mon-fri 9-17", "--replicas", number, "--window", "sat 9-12")
    done = init("schedule", *words, "--default", number)
    assert len(written(done.stdout).behaviors) == 2
    assert f"warning: the value is {number} at all times" in done.stderr
    assert "warning" not in init("schedule", *words, "--default", "1").stderr


def test_windows_with_numbers_of_their_own_and_a_word_about_overlaps() -> None:
    done = init("schedule", "--window", "fri 17 - mon 9 = 0", "--window", "daily 22-6 = 1", "--default", "3")
    assert [behavior.replicas for behavior in written(done.stdout).behaviors] == [0, 1]
    assert "stdout:19:9: warning" in done.stderr
    assert "[overlapping-behaviors]" in done.stderr


def test_a_warning_names_the_line_of_the_file_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "hours.yaml"
    done = init("schedule", "--window", "fri 17 - mon 9 = 0", "--window", "daily 22-6 = 1", "-o", str(file))
    assert f"{file}:20:9: warning" in done.stderr
    assert file.read_text().splitlines()[19].startswith("      - replicas: 1")
    example = ("--window", "fri 17 - mon 9 = 0", "--window", "mon-thu 22-6 = 1")
    assert "warning" not in init("schedule", *example, "--default", "3").stderr


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        ((), click.UsageError),
        (("--window", "mon 9-17"), click.UsageError),
        (("--window", "mon 9-17", "--replicas", "-1"), click.UsageError),
        (("--window", "someday", "--replicas", "1"), Invalid),
        (("--window", "mon 9-17 = 1", "--timezone", "Europe/Belin"), Invalid),
        (("--window", "mon 9-17 = 1", "--name", "Office Hours"), Invalid),
        (("--window", "mon 9-17 = 1", "--lead-time", "soon"), Invalid),
        (("--window", "mon 9-17 = 1", "--lead-time", "168h1s"), Invalid),
        (("--window", ""), Invalid),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(words: tuple[str, ...], failure: type[Exception]) -> None:
    done = init("schedule", *words)
    assert isinstance(done.exception, failure)
    assert done.stdout == ""


def test_init_itself_is_as_it_was_and_a_folder_may_be_called_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert init("./schedule").return_value == 0
    assert (tmp_path / "schedule" / "clusters" / "production").is_dir()
