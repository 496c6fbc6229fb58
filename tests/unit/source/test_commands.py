"""Running git: with a time limit that reaches its helpers, and without what could harm or leak."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from reconciler.source.child import heard_by
from reconciler.source.commands import CommandFailedError, Commands, stalled


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
    for module in ("child", "commands"):
        monkeypatch.setattr(f"reconciler.source.{module}.SILENCE", 0.3)
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


def test_what_a_command_writes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.source.commands.MOST_OUTPUT", 2**20)
    with pytest.raises(CommandFailedError) as caught:
        Commands(None, timeout=60).run("-c", "alias.endless=!yes", "endless")
    assert caught.value.summary == "it writes more than 1 MiB"


def test_many_messages_do_not_make_a_command_wait() -> None:
    """More than a pipe holds."""
    noisy = "alias.noisy=!head -c 1000000 /dev/zero >&2; echo done"
    assert Commands(None, timeout=60).line("-c", noisy, "noisy") == "done"


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits another process")
def test_a_command_has_a_limit_of_memory() -> None:
    with Commands(None, timeout=60).started("hash-object", "--stdin", feed=True) as child:
        limits = Path(f"/proc/{child._process.pid}/limits").read_text()
    (line,) = (line for line in limits.splitlines() if line.startswith("Max data size"))
    assert line.split()[3] == str(512 * 2**20)


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
        (
            "remote: denied\nfatal: Authentication failed for 'https://host/a.git/'",
            "AuthenticationFailed",
            "cannot read host: Authentication failed for 'https://host/a.git/'",
        ),
        (
            "fatal: could not read Username for 'https://host': terminal prompts disabled",
            "AuthenticationFailed",
            "cannot read host: could not read Username for 'https://host': terminal prompts disabled",
        ),
        (
            (
                "No ED25519 host key is known for h and you have requested strict checking.\r\n"
                "Host key verification failed.\r\nfatal: Could not read from remote repository.\n\nPlease make sure…"
            ),
            "AuthenticationFailed",
            "cannot read host: No ED25519 host key is known for h and you have requested strict checking.",
        ),
        (
            "git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "AuthenticationFailed",
            "cannot read host: git@host: Permission denied (publickey).",
        ),
        (
            "fatal: unable to access 'https://host/a.git/': Could not resolve host: host",
            "GitOperationFailed",
            "cannot read host: Could not resolve host: host",
        ),
        ("", "GitOperationFailed", "cannot read host: git ls-remote ended with status 128"),
    ],
)
def test_what_a_failure_means(stderr: str, reason: str, message: str) -> None:
    failure = stalled(CommandFailedError("ls-remote", 128, stderr), "host", "read")
    assert (failure.reason, failure.message) == (reason, message)
    assert failure.hint
