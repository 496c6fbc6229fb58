"""Git as a program: limits, credentials and when to try again."""

from __future__ import annotations

import base64
import random
import re
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.model.errors import Invalid, Stalled
from reconciler.source.child import heard_by
from reconciler.source.commands import CommandFailedError, Commands, TooMuchOutputError, stalled
from reconciler.source.credentials import GitOptions, authorize, parse_address, ssh_command
from reconciler.source.git import Backoff, retry_delay
from reconciler.source.opening import is_remote
from reconciler.source.selection import parse_rules, verdict
from tests.fakes.clock import START


def processes_with(text: str) -> list[str]:
    """Command lines of running processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def test_what_git_writes_is_returned() -> None:
    assert Commands(None, timeout=60).line("--version").startswith("git version")


def test_a_command_that_hangs_is_ended_with_all_of_its_helpers() -> None:
    helper = "sleep 86397"
    with pytest.raises(CommandFailedError) as caught:
        Commands(None, timeout=0.3).run("-c", f"alias.hang=!{helper}; true", "hang")
    assert caught.value.summary == "no answer within 0.3s"
    assert processes_with(helper) == []


def test_a_command_that_is_silent_is_ended_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.source.child.SILENCE", 0.3)
    with pytest.raises(CommandFailedError) as caught:
        Commands(None, timeout=600).run("-c", "alias.hang=!echo first; sleep 600", "hang")
    assert caught.value.summary == "no answer within 0.3s"


def test_whoever_listens_hears_of_a_command_that_goes_on() -> None:
    heard: list[str] = []
    with heard_by(lambda: heard.append("git")):
        Commands(None, timeout=60).run("--version")
    in_the_block = len(heard)
    Commands(None, timeout=60).run("--version")
    assert in_the_block >= len(("it was started", "its output", "the end of its output"))
    assert len(heard) == in_the_block


def test_what_a_command_writes_is_bounded() -> None:
    with pytest.raises(TooMuchOutputError) as caught:
        Commands(None, timeout=60).run("-c", "alias.endless=!yes", "endless", most=2**20)
    assert caught.value.summary == "it writes more than 1 MiB"


def test_many_messages_do_not_make_a_command_wait() -> None:
    """More than a pipe holds."""
    noisy = "alias.noisy=!head -c 1000000 /dev/zero >&2; echo done"
    assert Commands(None, timeout=60).line("-c", noisy, "noisy") == "done"


def test_a_command_and_what_it_starts_have_a_limit_of_memory_in_kib() -> None:
    assert Commands(None, timeout=60).line("-c", "alias.limit=!ulimit -d", "limit") == str(512 * 2**10)


def test_git_that_was_there_and_is_gone(tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="git is not installed"):
        Commands(None, timeout=60, environment={"PATH": str(tmp_path)}).run("--version")


def test_secrets_and_users_of_urls_are_not_in_what_went_wrong() -> None:
    commands = Commands(None, timeout=60, secrets=("hunter2",))
    with pytest.raises(CommandFailedError) as caught:
        commands.run("-c", "alias.say=!echo fatal: hunter2 at https://u:p@host/x >&2; false", "say")
    assert caught.value.summary == "*** at https://host/x"


def test_hooks_are_off_and_only_known_transports_are_on(tmp_path: Path) -> None:
    commands = Commands(None, timeout=60, network=True)
    assert commands.line("config", "core.hooksPath") == "/dev/null"
    with pytest.raises(CommandFailedError, match="transport 'ext' not allowed"):
        commands.run("ls-remote", f"ext::sh -c touch% {tmp_path}/ran")
    assert list(tmp_path.iterdir()) == []


def test_without_network_nothing_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="transport 'file' not allowed"):
        Commands(None, timeout=60).run("ls-remote", f"file://{tmp_path}")


def test_configuration_that_the_environment_brings_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "http.sslCAInfo")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "/etc/ca.pem")
    commands = Commands(None, timeout=60, config=(("user.name", "x"),))
    assert commands.line("config", "http.sslCAInfo") == "/etc/ca.pem"
    assert commands.line("config", "user.name") == "x"


@pytest.mark.parametrize(
    ("stderr", "reason", "message"),
    [
        ("remote: denied\nfatal: Authentication failed for 'https://host/a.git/'", "AuthenticationFailed",
         "cannot read host: Authentication failed for 'https://host/a.git/'"),
        ("fatal: could not read Username for 'https://host': terminal prompts disabled", "AuthenticationFailed",
         "cannot read host: could not read Username for 'https://host': terminal prompts disabled"),
        (
            (
                "No ED25519 host key is known for h and you have requested strict checking.\r\n"
                "Host key verification failed.\r\nfatal: Could not read from remote repository.\n\nPlease make sure…"
            ),
            "AuthenticationFailed",
            "cannot read host: No ED25519 host key is known for h and you have requested strict checking.",
        ),
        ("git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.",
         "AuthenticationFailed", "cannot read host: git@host: Permission denied (publickey)."),
        ("fatal: unable to access 'https://host/a.git/': Could not resolve host: host", "GitOperationFailed",
         "cannot read host: Could not resolve host: host"),
        ("fatal: unable to access 'https://host/a.git/': server certificate verification failed. CAfile: none", "GitOperationFailed",
         "cannot read host: server certificate verification failed. CAfile: none"),
        ("fatal: repository 'https://host/certificates.git/' not found", "GitOperationFailed",
         "cannot read host: repository 'https://host/certificates.git/' not found"),
        ("", "GitOperationFailed", "cannot read host: git ls-remote ended with status 128"),
    ],
)  # fmt: skip
def test_what_a_failure_means(stderr: str, reason: str, message: str) -> None:
    failure = stalled(CommandFailedError("ls-remote", 128, stderr), "host", "read")
    assert (failure.reason, failure.message) == (reason, message)
    assert failure.hint
    assert ("GIT_SSL_CAINFO" in failure.hint) == ("server certificate" in stderr)


TOKEN = "ghp_0123456789abcdefghij"


def header(url: str, options: GitOptions) -> tuple[str, str]:
    """What an authorization is for, and user and password."""
    (key, value), _ = authorize(parse_address(url), options).config
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
    "url",
    [
        "ext::sh -c touch% /tmp/x",
        "ext::sh -c x://",
        "-oProxyCommand=x:y",
        "ftp://u:hunter2@host/a.git",
        "git://u:hunter2@host/a.git",
    ],
)
def test_other_transports_are_refused_without_their_secrets(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_address(url)
    assert "hunter2" not in str(caught.value)


def test_a_token_in_a_file_is_for_its_host_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    key, value = header("https://host:8443/group/a.git", GitOptions(token_file=str(file)))
    assert key == "http.https://host:8443/.extraHeader"
    assert value == f"x-access-token:{TOKEN}"
    assert header("https://host/a.git", GitOptions(username="bot", token_file=str(file)))[1] == f"bot:{TOKEN}"


def test_a_token_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="No such file") as caught:
        authorize(parse_address("https://host/a.git"), GitOptions(token_file=str(tmp_path / "none")))
    assert caught.value.reason == "AuthenticationFailed"


def test_ssh_never_asks_and_never_trusts_a_host_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    command = ssh_command(GitOptions())
    assert command.startswith("ssh ")
    assert "StrictHostKeyChecking=yes" in command
    assert "BatchMode=yes" in command


def test_the_key_and_the_hosts_that_were_named_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -4")
    command = ssh_command(GitOptions(ssh_key="/keys/a key", known_hosts="/keys/hosts"))
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
    credentials = GitOptions(token_file=str(file) if where == "file" else "")
    with pytest.raises(Stalled, match="not sent over plain http") as caught:
        authorize(parse_address(url), credentials)
    assert caught.value.reason == "AuthenticationFailed"
    assert TOKEN not in str(caught.value)
    assert authorize(parse_address(url), replace(credentials, plain_http=True)).secrets[0] == TOKEN


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1", "127.8.8.8:80", "[::1]:3000", "git.localhost"])
def test_a_token_may_go_to_this_machine_itself(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_GIT_TOKEN", TOKEN)
    assert authorize(parse_address(f"http://{host}/a.git"), GitOptions()).secrets[0] == TOKEN


def failed(target: str, times: int, before: Backoff | None = None) -> Backoff:
    for _ in range(times):
        before = Backoff.after(Stalled("away", reason="GitOperationFailed"), before, target, START)
    assert before is not None
    return before


def test_it_begins_at_three_quarters_of_a_second_and_doubles() -> None:
    delays = [retry_delay(failures, "main") for failures in (1, 2, 3, 4)]
    for delay, seconds in zip(delays, (0.75, 1.5, 3, 6), strict=True):
        assert timedelta(seconds=seconds * 0.9) < delay <= timedelta(seconds=seconds)


def test_a_failed_commit_waits_and_another_one_does_not() -> None:
    backoff = failed("bad", times=8)
    assert not backoff.allows("bad", START + timedelta(seconds=60))
    assert backoff.allows("newer", START)
    assert backoff.allows("bad", backoff.not_before)


def test_another_target_begins_anew() -> None:
    assert failed("newer", times=1, before=failed("bad", times=8)).failures == 1


def test_a_clock_that_was_set_back_a_year_does_not_stop_it_for_a_year() -> None:
    assert failed("bad", times=8).allows("bad", START - timedelta(days=365))


# `.sourceignore` against git itself, which reads the same syntax.

NAMES = ("a", "b", "ab", "ba", "aab", "a.yaml", "b-a", "!a", "#a", "a b", "[a]", "a]")
PIECES = ("a", "b", "*", "**", "?", "/", "**/", "/**", "[ab]", "[!a]", "[^b-z]", "[]a]", "\\a", "\\[", ".", "!", "#", " ")  # fmt: skip


def left_out_by_git(folder: Path, patterns: str, paths: list[str]) -> set[str]:
    (folder / ".gitignore").write_text(patterns)
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=folder,
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    return {path for path in done.stdout.decode().split("\0") if path}


def left_out_here(patterns: str, path: str) -> bool:
    """As a walk asks: a folder that is left out takes all that is in it along."""
    rules = parse_rules(patterns)
    parts = path.split("/")
    steps = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(verdict(rules, step, folder=step != path) for step in steps[:-1]) or bool(
        verdict(rules, path, folder=False)
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("seed", range(60))
def test_the_same_paths_as_git(seed: int, repository: Path) -> None:
    draw = random.Random(seed)
    for _ in range(5):
        lines = ["".join(draw.choices(PIECES, k=draw.randint(1, 6))) for _ in range(draw.randint(1, 4))]
        paths = sorted({"/".join(draw.choices(NAMES, k=draw.randint(1, 4))) for _ in range(30)})
        # git itself takes `a**/b` for `a` and `**/b` where only letters stand before the stars
        patterns = "\n".join(line for line in lines if not re.search(r"[^/*]\*\*|\*\*[^/*]", line))
        here = {path for path in paths if left_out_here(patterns, path)}
        assert here == left_out_by_git(repository, patterns, paths), patterns


@pytest.mark.parametrize(
    "pattern", ["*a*a*a*a*a*b", "*a" * 400 + "b", "**/a" * 200 + "/b", "[a]*" * 300 + "b", "*" * 5_000 + "b"]
)
def test_no_pattern_is_slow_on_a_long_name(pattern: str) -> None:
    """One that backtracks would not come to an end."""
    rules = parse_rules(pattern)
    for path in ("a" * 5_000, "/".join("a" * 200), "a" * 5_000 + "c"):
        assert not verdict(rules, path, folder=False)
