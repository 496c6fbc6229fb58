from dataclasses import fields
from datetime import timedelta
from functools import reduce
from pathlib import Path

import pytest
import yaml

from reconciler.files import packaged_texts
from reconciler.model.errors import Invalid
from reconciler.settings.load import load_settings, variable_of
from reconciler.settings.settings import Settings, setting_fields


def _default(name: str) -> object:
    return reduce(getattr, name.split("."), Settings())


def test_the_shipped_file_shows_every_setting_with_its_default(tmp_path: Path) -> None:
    text = packaged_texts("config", suffix=".yaml")["headroom.yaml"]
    shown = tmp_path / "headroom.yaml"
    shown.write_text(text)
    assert load_settings(str(shown), environment={}) == Settings()
    document = yaml.safe_load(text)
    leaves = sum(len(value) if isinstance(value, dict) else 1 for value in document.values())
    assert leaves == len(setting_fields())
    assert len(document) == len(fields(Settings))


def test_flags_win_over_variables_and_those_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("git: {interval: 10s, timeout: 20s}\ndialect: ca\n")
    settings = load_settings(
        str(file),
        environment={"HEADROOM_GIT_INTERVAL": "30s", "HEADROOM_DIALECT": "ca"},
        flags={"dialect": "karpenter", "repository": None},
    )
    assert settings.git.interval == timedelta(seconds=30)
    assert settings.git.timeout == timedelta(seconds=20)
    assert settings.dialect == "karpenter"
    assert settings.repository == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("git: {intervall: 10s}", "no setting 'git.intervall', did you mean 'git.interval'"),
        ("git: {interval: soon}", "git.interval is 'soon', expected a duration such as \"1m30s\""),
        ("dialect: azure", "expected one of karpenter, ca"),
        ("suspend: perhaps", "expected true or false"),
        ("caps: {newNodesPerPass: -1}", "expected 0 or more"),
        ("placement: {chunksPerNode: 3}", "no setting 'placement.chunksPerNode'"),
        ("caps: {newNodesPerPas: 1}", "no setting 'caps.newNodesPerPas', did you mean 'caps.newNodesPerPass'"),
        ("placement: {instanceTypes: 0}", "placement.instanceTypes is 0, expected 1 or more"),
        ("placement: {instanceTypes: 1000000}", "placement.instanceTypes is 1000000, expected at most 600"),
        ("placement: {optimalWithin: 0s}", "placement.optimalWithin is '0s', expected a duration of more than 0"),
        ("placement: {optimalWithin: -1s}", "placement.optimalWithin is '-1s', expected a duration"),
        (
            "caps: {newNodesPerPass: 99999999999999999999999}",
            "caps.newNodesPerPass is 1e+23, expected a whole number",
        ),
        ("caps: {nodesPerPool: 1000001}", "caps.nodesPerPool is 1000001, expected at most 1,000,000"),
        ("caps: {pricePerHour: .nan}", ".nan is not a number"),
        ("caps: {pricePerHour: 1e99}", "expected at most 1,000,000,000"),
        ("caps: {pruneShare: 25}", "caps.pruneShare is 25, expected at most 1"),
        ("caps: {newNodesPerPass: true}", "expected a whole number"),
        ("allowedHosts: [a.example.com]", "allowedHosts is ['a.example.com'], expected text"),
        (
            "forge: {pages: headroom.example.com}",
            "forge.pages is 'headroom.example.com', expected an address with https://",
        ),
        ("forge: {kind: bitbucket}", "expected one of github, gitlab, gitea"),
        ("revision: 1234567", "revision is 1234567, expected text, in quotes"),
        ("git: 5", "git is 5, expected a mapping of settings"),
        ("- a", "a config file is a mapping of settings"),
        ("a: [", "did not find expected node content"),
        ("git:\n\tinterval: 1m\n", ":2:1: a tab where only spaces may be"),
        ("placement: [1]", "placement is [1], expected a mapping of settings"),
        ("a: " + "[" * 5_000, "more than 64 levels of nesting"),
        ("placement: {mode: fast, mode: optimal}", "'mode' is given twice"),
        ("caps: {}\ncaps: {}\n", ":2:1: 'caps' is given twice"),
    ],
)
def test_a_bad_setting_says_where_and_what_was_expected(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(Invalid) as caught:
        load_settings(str(file), environment={})
    assert message in caught.value.message
    assert str(file) in caught.value.message


COUNTS = [name for name in setting_fields() if type(_default(name)) is int and name != "placement.instance_types"]


@pytest.mark.parametrize("name", COUNTS)
def test_no_count_is_greater_than_a_million(name: str) -> None:
    variable = variable_of(name)
    load_settings(None, environment={variable: "1000000"})
    with pytest.raises(Invalid, match=r"expected at most 1,000,000$"):
        load_settings(None, environment={variable: "1000001"})


def test_a_bad_variable_is_named_and_its_setting_as_the_file_spells_it() -> None:
    with pytest.raises(Invalid, match=r"HEADROOM_GIT_INTERVAL: git\.interval is 'x'"):
        load_settings(None, environment={"HEADROOM_GIT_INTERVAL": "x"})
    with pytest.raises(Invalid) as refused:
        load_settings(None, environment={"HEADROOM_GIT_INTERVAL": "-5s"})
    assert refused.value.hint == 'write a duration of 0 or more, such as "5s"'
    with pytest.raises(Invalid) as refused:
        load_settings(None, environment={"HEADROOM_GIT_INTERVAL": "99999999999h"})
    assert refused.value.hint == "write at most 2562047h, which is 292 years"
    with pytest.raises(Invalid, match=r"HEADROOM_CAPS_PRUNE_SHARE: caps\.pruneShare is '2'"):
        load_settings(None, environment={"HEADROOM_CAPS_PRUNE_SHARE": "2"})


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HEADROOM_REPO", "HEADROOM_REPOSITORY"),
        ("HEADROOM_SUSPNED", "HEADROOM_SUSPEND"),
        ("HEADROOM_CAPS_PRUNESHARE", "HEADROOM_CAPS_PRUNE_SHARE"),
        ("HEADROOM_PRUNE_SHARE", "HEADROOM_CAPS_PRUNE_SHARE"),
        ("HEADROOM_GIT_TOKENS", "HEADROOM_GIT_TOKEN"),
        ("HEADROOM_LISTEN_PORT", "HEADROOM_LISTEN"),
    ],
)
def test_a_mistyped_variable_is_refused(variable: str, meant: str) -> None:
    with pytest.raises(Invalid) as caught:
        load_settings(None, environment={variable: "1"})
    assert caught.value.message == f"{variable}: there is no such setting, did you mean {meant!r}?"


def test_variables_that_are_no_settings_are_left_alone() -> None:
    """A traceback's, a secret's, and those of a Service named headroom, as kubelet gives them to every container beside it."""
    service = {
        "HEADROOM_SERVICE_HOST": "10.0.0.1",
        "HEADROOM_SERVICE_PORT": "8080",
        "HEADROOM_SERVICE_PORT_METRICS": "8080",
        "HEADROOM_PORT": "tcp://10.0.0.1:8080",
        "HEADROOM_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "HEADROOM_PORT_8080_TCP_PROTO": "tcp",
        "HEADROOM_PORT_8080_TCP_PORT": "8080",
        "HEADROOM_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    for name in ("HEADROOM", "HEADROOM_BLUE", "HEADROOM_SERVICE"):
        variables = {key.replace("HEADROOM", name): value for key, value in service.items()}
        environment = {"HEADROOM_DEBUG": "1", "HEADROOM_GIT_TOKEN": "x", "HEADROOM_FOO": "x", "HOME": "/", **variables}
        assert load_settings(None, environment=environment) == Settings()


def test_a_missing_file_is_named() -> None:
    with pytest.raises(Invalid, match=r"nowhere\.yaml: cannot be read"):
        load_settings("nowhere.yaml", environment={})
