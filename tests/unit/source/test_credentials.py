"""How a remote is authorized, and what never shows."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.model.errors import Invalid, Stalled
from reconciler.source.credentials import Credentials, authorize, is_remote, parse_address, ssh_command

TOKEN = "ghp_0123456789abcdefghij"


def header(url: str, credentials: Credentials) -> tuple[str, str]:
    """What an authorization is for, and user and password."""
    (key, value), _ = authorize(parse_address(url), credentials).config
    return key, base64.b64decode(value.removeprefix("Authorization: Basic ")).decode()


@pytest.mark.parametrize(
    ("repository", "remote"),
    [
        ("https://github.com/acme/capacity.git", True),
        ("file:///srv/capacity.git", True),
        ("git@github.com:acme/capacity.git", True),
        ("forge:acme/capacity.git", True),
        ("./clusters", False),
        ("/srv/capacity", False),
        ("capacity", False),
    ],
)
def test_what_is_a_url(repository: str, remote: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_remote(repository) is remote


@pytest.mark.parametrize(
    ("written", "url", "username", "password"),
    [
        ("https://host/a.git", "https://host/a.git", "", ""),
        ("https://u:p%40ss@host:8443/a.git", "https://host:8443/a.git", "u", "p@ss"),
        (f"https://{TOKEN}@host/a.git", "https://host/a.git", "", TOKEN),
        ("https://anna@host/a.git", "https://anna@host/a.git", "anna", ""),
        ("ssh://git:secret@host:22/a.git", "ssh://git@host:22/a.git", "", ""),
        ("git@host:a.git", "git@host:a.git", "", ""),
    ],
)
def test_secrets_are_taken_out_of_a_url(written: str, url: str, username: str, password: str) -> None:
    address = parse_address(written)
    assert (address.url, address.username, address.password) == (url, username, password)


@pytest.mark.parametrize(
    "url", ["ext::sh -c touch% /tmp/x", "ext::sh -c x://", "-oProxyCommand=x:y", "ftp://u:hunter2@host/a.git"]
)
def test_other_transports_are_refused_without_their_secrets(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_address(url)
    assert "hunter2" not in str(caught.value)


def test_a_token_in_a_file_is_for_its_host_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    key, value = header("https://host:8443/group/a.git", Credentials(token_file=str(file)))
    assert key == "http.https://host:8443/.extraHeader"
    assert value == f"x-access-token:{TOKEN}"
    assert header("https://host/a.git", Credentials("bot", str(file)))[1] == f"bot:{TOKEN}"


def test_a_token_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_GIT_TOKEN", TOKEN)
    assert header("https://host/a.git", Credentials())[1] == f"x-access-token:{TOKEN}"


def test_a_password_in_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADROOM_GIT_TOKEN", raising=False)
    assert header("https://u:p@host/a.git", Credentials())[1] == "u:p"


def test_no_credentials_leave_git_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADROOM_GIT_TOKEN", raising=False)
    for url in ("https://host/a.git", "file:///srv/a.git", "git://host/a.git"):
        assert authorize(parse_address(url), Credentials()).config == ()


def test_a_token_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="No such file") as caught:
        authorize(parse_address("https://host/a.git"), Credentials(token_file=str(tmp_path / "none")))
    assert caught.value.reason == "AuthenticationFailed"


def test_ssh_never_asks_and_never_trusts_a_host_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    command = ssh_command(Credentials())
    assert command.startswith("ssh ")
    assert "StrictHostKeyChecking=yes" in command
    assert "BatchMode=yes" in command


def test_the_key_and_the_hosts_that_were_named_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -4")
    command = ssh_command(Credentials(ssh_key="/keys/a key", known_hosts="/keys/hosts"))
    assert command.startswith("ssh -4 ")
    assert "-i '/keys/a key' -o IdentitiesOnly=yes" in command
    assert "UserKnownHostsFile=/keys/hosts -o GlobalKnownHostsFile=/dev/null" in command


@pytest.mark.parametrize("url", ["http://host/a.git", "http://10.0.0.1/a.git", "http://localhost.example.com/a.git"])
@pytest.mark.parametrize("where", ["file", "environment", "url"])
def test_a_token_is_not_sent_over_plain_http(
    url: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADROOM_GIT_TOKEN", raising=False)
    file = tmp_path / "token"
    file.write_text(TOKEN)
    if where == "environment":
        monkeypatch.setenv("HEADROOM_GIT_TOKEN", TOKEN)
    if where == "url":
        url = url.replace("//", f"//bot:{TOKEN}@")
    credentials = Credentials(token_file=str(file) if where == "file" else "")
    with pytest.raises(Stalled, match="not sent over plain http") as caught:
        authorize(parse_address(url), credentials)
    assert caught.value.reason == "AuthenticationFailed"
    assert TOKEN not in str(caught.value)
    assert authorize(parse_address(url), replace(credentials, plain_http=True)).secrets[0] == TOKEN


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1", "127.8.8.8:80", "[::1]:3000", "git.localhost"])
def test_a_token_may_go_to_this_machine_itself(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_GIT_TOKEN", TOKEN)
    assert authorize(parse_address(f"http://{host}/a.git"), Credentials()).secrets[0] == TOKEN
