from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from reconciler.model.errors import Invalid
from reconciler.packaged import packaged_text
from reconciler.settings import Settings, load_settings, setting_names


def test_the_shipped_file_shows_every_setting_with_its_default(tmp_path: Path) -> None:
    text = packaged_text("config/headroom.yaml")
    shown = tmp_path / "headroom.yaml"
    shown.write_text(text)
    assert load_settings(str(shown), environment={}) == Settings()
    document = yaml.safe_load(text)
    leaves = sum(len(value) if isinstance(value, dict) else 1 for value in document.values())
    assert leaves == len(setting_names())
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
        (
            "placement: {spotShare: 0}",
            "placement.spot_share is 0, expected a part of the whole: more than 0, at most 1",
        ),
        ("placement: {spotShare: 34}", "expected a part of the whole: more than 0, at most 1"),
        ("caps: {newNodesPerPass: true}", "expected a whole number"),
        ("git: 5", "no setting 'git'"),
        ("- a", "a config file is a mapping of settings"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_bad_setting_says_where_and_what_was_expected(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(Invalid) as caught:
        load_settings(str(file), environment={})
    assert message in caught.value.message
    assert str(file) in caught.value.message


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(Invalid, match=r"HEADROOM_GIT_INTERVAL: git\.interval"):
        load_settings(None, environment={"HEADROOM_GIT_INTERVAL": "x"})


def test_a_missing_file_is_named() -> None:
    with pytest.raises(Invalid, match=r"nowhere\.yaml: cannot be read"):
        load_settings("nowhere.yaml", environment={})
