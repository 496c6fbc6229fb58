"""`headroom schedule` as a person meets it: the shared cases, the proposal's examples, spans, filters and exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.__main__ import main
from reconciler.cli.application import application
from reconciler.cli.schema import output_schema
from tests.builders import manifest
from tests.case_files import cases_in, for_each

ROOT = Path(__file__).resolve().parents[3]
PROPOSAL = ROOT / "tests" / "cases" / "schedule_of_the_proposal.yaml"
RANGES = ROOT / "tests" / "cases" / "schedule_with_ranges.yaml"
SCHEMA = output_schema("schedules.v1")
PAGE = ROOT / "docs" / "commands" / "schedule.md"
MONDAY = "2026-11-23T18:30:00Z"


def schedule(*words: str) -> Result:
    return CliRunner().invoke(application, ["schedule", *words], prog_name="headroom", standalone_mode=False)


def document(*words: str, code: int = 0) -> Any:
    done = schedule(*words, "--output", "json")
    assert done.return_value == code, done.output
    printed = json.loads(done.output)
    jsonschema_rs.Draft202012Validator(SCHEMA).validate(printed)
    return printed


def producer(spec: Any, name: str = "hours", namespace: str = "shop") -> str:
    body = manifest("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer", name, namespace, spec={"schedule": spec})
    return yaml.safe_dump(body)


def office_hours(zone: str = "UTC", **more: Any) -> dict[str, Any]:
    behavior = {"replicas": 3, "start": {"hours": 9}, "end": {"hours": 17}}
    return {"timezone": zone, "defaultReplicas": 1, "behaviors": [behavior | more]}


@for_each(cases_in("schedules.yaml"))
def test_a_case(case: Any, tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(producer(case["spec"]))
    (row,) = document(str(tmp_path), "--now", case["now"])["schedules"]
    assert {key: row[key] for key in case["expect"]} == case["expect"]


def test_the_proposals_example_is_red_3_green_2_blue_1() -> None:
    """The week that the proposal draws, from Sunday on: 1 over the weekend, 3 by day, 2 in the evenings."""
    words = ("--now", "2026-11-22T08:00:00Z", "--to", "2026-11-29T08:00:00Z")
    (row,) = document(str(PROPOSAL), *words)["schedules"]
    day = ["3", "2"]
    assert [str(span["value"]) for span in row["timeline"]] == ["1", *day * 4, "3", "1"]
    assert [span["behavior"] for span in row["timeline"]] == [0, *[1, 2] * 4, 1, 0]


def test_what_the_proposal_says_will_not_work_is_found_with_the_list_to_write() -> None:
    printed = document(str(RANGES), "--now", MONDAY, code=1)
    assert [row["name"] for row in printed["schedules"]] == ["lists"]
    assert [(item["code"], item["line"], item["hint"]) for item in printed["findings"] if item["name"] == "ranges"] == [
        ("list-only", 13, 'write "Mon,Tue,Wed,Thu,Fri"'),
        ("list-only", 15, 'write "Jan,Feb,Mar"'),
        ("list-only", 17, 'write "Mon,Tue,Wed,Thu,Fri"'),
        ("list-only", 19, 'write "Feb,Mar,Apr"'),
    ]


def test_spans_fill_what_is_asked_for_without_gaps() -> None:
    printed = document(str(PROPOSAL), "--now", MONDAY, "--span", "month")
    (row,) = printed["schedules"]
    edges = [(span["from"], span["to"]) for span in row["timeline"]]
    assert (printed["from"], printed["to"]) == (MONDAY, "2026-12-24T18:30:00Z")
    assert edges[0][0] == printed["from"]
    assert edges[-1][1] == printed["to"]
    assert [to for _, to in edges[:-1]] == [begins for begins, _ in edges[1:]]


def test_collisions_are_told_with_their_first_time() -> None:
    (row,) = document(str(PROPOSAL), "--now", MONDAY)["schedules"]
    assert row["collisions"] == [
        {"from": "2026-11-28T01:00:00Z", "to": "2026-11-30T17:00:00Z", "winner": 0, "loser": 2}
    ]


def test_a_span_that_ends_before_the_collision_does_is_told_up_to_its_end() -> None:
    words = ("--now", MONDAY, "--to", "2026-11-29T00:00:00Z")
    (row,) = document(str(PROPOSAL), *words)["schedules"]
    assert row["collisions"][0]["to"] == "2026-11-29T00:00:00Z"


def test_without_a_change_to_come_the_next_value_is_null(tmp_path: Path) -> None:
    (tmp_path / "constant.yaml").write_text(producer({"defaultReplicas": 4}))
    (row,) = document(str(tmp_path), "--now", MONDAY)["schedules"]
    assert (row["currentValue"], row["nextValue"], row["nextValueTime"]) == (4, None, None)
    assert "4 now" in schedule(str(tmp_path), "--now", MONDAY).output
    assert "nothing changes any more" in schedule(str(tmp_path), "--now", MONDAY).output


def test_clusters_of_one_repository_may_have_schedules_of_one_name(tmp_path: Path) -> None:
    for cluster in ("east", "west"):
        (tmp_path / "clusters" / cluster).mkdir(parents=True)
        (tmp_path / "clusters" / cluster / "hours.yaml").write_text(producer(office_hours()))
    rows = document("--repo", str(tmp_path))["schedules"]
    assert [row["source"]["file"] for row in rows] == ["clusters/east/hours.yaml", "clusters/west/hours.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        ("--to", "2026-11-20T00:00:00Z"),
        ("--to", "2026-12-20T00:00:00Z", "--span", "week"),
        ("--to", "2046-12-20T00:00:00Z"),
        ("--from", "0001-01-01T00:00:00Z"),
        ("--from", "9999-12-31T00:00:00Z"),
        ("--repo", "elsewhere"),
    ],
)
def test_what_cannot_be_asked_for_is_wrong_usage(words: tuple[str, ...]) -> None:
    done = schedule(str(PROPOSAL), "--now", MONDAY, *words)
    assert isinstance(done.exception, click.UsageError)


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    done = schedule(str(tmp_path))
    assert (done.exit_code, done.output) == (0, "No schedule to show.\n")


def test_the_docs_page_shows_the_proposals_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew with HEADROOM_GOLDEN=write."""
    shutil.copy(PROPOSAL, tmp_path / "scheduling.yaml")
    monkeypatch.chdir(tmp_path)
    command = f"scheduling.yaml --now {MONDAY}"
    block = f"```console\n$ headroom schedule {command}\n{schedule(*command.split()).output}```"
    pattern = re.compile(r"```console\n.*?```", re.DOTALL)
    text = PAGE.read_text()
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        PAGE.write_text(pattern.sub(lambda _: block, text, count=1))
        text = PAGE.read_text()
    shown = pattern.search(text)
    assert shown is not None
    assert shown[0] == block


def test_a_picture_tells_its_findings_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(producer(office_hours(zone="Europe/Belin")))
    done = schedule(str(tmp_path), "--now", MONDAY, "--output", "svg")
    assert done.return_value == 1
    assert done.stdout.startswith("<svg ")
    assert "'Europe/Belin' is not a time zone [unknown-time-zone]" in done.stderr
    assert "wrong.yaml" in done.stderr
    (tmp_path / "wrong.yaml").write_text(producer(office_hours()))
    assert schedule(str(tmp_path), "--now", MONDAY, "--output", "svg").stderr == ""


def test_sentences_wrap_at_the_terminals_width_and_a_long_name_moves_no_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(
        producer(office_hours(), name="hours-of-a-shop-with-" + "very-" * 20 + "long-name")
    )
    (tmp_path / "b.yaml").write_text(producer(office_hours(zone="Europe/Belin"), name="wrong"))
    (tmp_path / "c.yaml").write_text(producer(office_hours(), name="short"))
    words = (str(tmp_path), "--now", MONDAY)
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = schedule(*words).output
    assert re.search(r"^  shop/short {1,40} 1  3 from", whole, re.MULTILINE)
    assert any("'Europe/Belin' is not a time zone [unknown-time-zone]" in line for line in whole.splitlines())
    monkeypatch.setenv("COLUMNS", "60")
    narrow = schedule(*words).output
    told = narrow[narrow.index("  Findings") :].splitlines()
    assert all(len(line) <= 60 or " " not in line.strip() for line in told)
    assert " ".join(narrow.split()).count("'Europe/Belin' is not a time zone [unknown-time-zone]") == 1


def test_output_is_utf_8_whatever_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hours.yaml").write_text(producer(office_hours()))
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    with pytest.raises(SystemExit) as ended:
        main(["schedule", str(tmp_path)])
    sys.stdout.flush()
    assert ended.value.code == 0
    assert "███" in written.getvalue().decode()


def test_the_page_begins_with_the_document_that_is_broken_and_invents_none(tmp_path: Path) -> None:
    broken = producer(office_hours(zone="Europe/Belin"))
    (tmp_path / "a.yaml").write_text(f"---\n# our own words\n{broken}---\nkind: ConfigMap\napiVersion: v1\n")
    (tmp_path / "b.yaml").write_text("kind: MetricsProducer\nspec: [\n")
    done = schedule(str(tmp_path), "--output", "html", "--now", MONDAY)
    assert done.return_value == 1
    texts = re.findall(r'<textarea class="source".*?aria-label="(.*?)">(.*?)</textarea>', done.output, re.DOTALL)
    assert [name for name, _ in texts] == ["shop/hours", f"{tmp_path}/b.yaml:1"]
    assert texts[0][1] == f"# our own words\n{broken}"
    assert "kind: MetricsProducer\nspec: [" in texts[1][1]
    assert "example" not in done.output.partition("<main")[0]


def test_where_there_is_no_schedule_the_page_says_that_its_own_is_an_example(tmp_path: Path) -> None:
    assert "this one is an example" in schedule(str(tmp_path), "--output", "html", "--now", MONDAY).output


def test_a_file_that_cannot_be_read_is_an_error_as_for_budgets(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: MetricsProducer\nspec: [\n")
    assert schedule(str(tmp_path), "--now", MONDAY).return_value == 1
    words = ["budgets", "--repo", str(tmp_path), "--nodes", "3", "--now", MONDAY]
    assert CliRunner().invoke(application, words, standalone_mode=False).return_value == 1
