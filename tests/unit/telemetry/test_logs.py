"""Log lines: two forms, levels, other libraries' messages, secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.telemetry.logs import configure_logs, logger


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_json_line_has_the_event_its_facts_its_level_and_a_utc_time(output: io.StringIO) -> None:
    configure_logs(form="json", stream=output)
    logger().info("pass over", revision="main@sha1:abc", created=3)
    (line,) = lines(output)
    assert line["time"].endswith("Z")
    del line["time"]
    assert line == {
        "created": 3,
        "event": "pass over",
        "level": "info",
        "logger": "headroom",
        "revision": "main@sha1:abc",
    }


def test_the_console_form_is_one_plain_line_when_it_is_no_terminal(output: io.StringIO) -> None:
    configure_logs(form="console", stream=output)
    logger().warning("poll failed", reason="GitOperationFailed")
    (line,) = output.getvalue().splitlines()
    assert "poll failed" in line
    assert "reason=GitOperationFailed" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("variables", "colours"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)]
)
def test_a_terminal_gets_colours_unless_they_are_not_wanted(
    output: io.StringIO, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, colours: bool
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(output, "isatty", lambda: True)
    configure_logs(form="console", stream=output)
    logger().info("pass over")
    assert ("\x1b" in output.getvalue()) is colours


def test_messages_below_the_level_are_left_out(output: io.StringIO) -> None:
    configure_logs(form="json", level="warning", stream=output)
    logger().info("nothing to see")
    logger().error("something to see")
    assert [line["event"] for line in lines(output)] == ["something to see"]


def test_debug_is_for_headroom_alone_and_other_libraries_speak_from_warnings_up(output: io.StringIO) -> None:
    configure_logs(form="json", level="debug", stream=output)
    logger().debug("ours")
    logging.getLogger("reconciler.source").debug("ours too")
    logging.getLogger("apscheduler.scheduler").info("theirs")
    logging.getLogger("apscheduler.scheduler").warning("theirs, and it %s", "matters")
    assert [line["event"] for line in lines(output)] == ["ours", "ours too", "theirs, and it matters"]


def test_secrets_are_masked_in_both_forms_and_in_other_libraries_messages(output: io.StringIO) -> None:
    for form in ("json", "console"):
        configure_logs(form=form, stream=output)
        logger().info("fetching https://bot:s3cret@git.example", token="s3cret", remotes=["https://s3cret@git.example"])
        logging.getLogger("git.cmd").error("fatal: https://bot:s3cret@git.example not found")
    assert "s3cret" not in output.getvalue()
    assert output.getvalue().count("git.example") == 6


def test_names_cannot_act_on_the_terminal_of_who_reads_the_console(output: io.StringIO) -> None:
    configure_logs(form="console", stream=output)
    logger().info("read\n::error::forged", file="a\x1b[2Jb\u202e.yaml", files=["\x1b[2J"])
    text = output.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"a\x1b[2Jb\u202e.yaml" in text
