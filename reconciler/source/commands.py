"""Git as a program: its options, its commands, and what its failures mean.

GitPython starts the processes. Its own time limit kills only the children it finds at that moment. Here git has a process group,
which is ended as a whole, since `git fetch` waits for helpers that may hang on the network.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from reconciler.model.declared import REMOVALS_TRAILER
from reconciler.model.errors import Stalled
from reconciler.source.child import (
    MEMORY,
    NOT_INSTALLED,
    WITHIN_MEMORY,
    OutOfTimeError,
    OutputTooLongError,
    result_of,
)

OPERATION_FAILED = "GitOperationFailed"
AUTHENTICATION_FAILED = "AuthenticationFailed"

_SIGNS: tuple[tuple[str, str, str], ...] = (
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED|No .* host key is known for",
        AUTHENTICATION_FAILED,
        "compare the host's key with what its owner publishes, then put it into the known_hosts file",
    ),
    (
        r"Permission denied \(|Authentication failed|could not read (Username|Password)|returned error: 40[13]|invalid credentials",
        AUTHENTICATION_FAILED,
        "check the token or key, its expiry and its right to read this repository",
    ),
    (
        r"SSL certificate|server certificate|certificate (verif|signer)",
        OPERATION_FAILED,
        "name a file with the certificate of the server's authority in GIT_SSL_CAINFO",
    ),
    (
        r"repository .* not found|returned error: 404|does not appear to be a git repository|Repository not found",
        OPERATION_FAILED,
        "check the address; hosts also answer this when the credentials may not see the repository",
    ),
    (
        r"dubious ownership",
        OPERATION_FAILED,
        "let this user own the repository, or add it to safe.directory in git's configuration",
    ),
    (r"unadvertised object", OPERATION_FAILED, "name a branch or a tag: this server gives no other commits"),
    (
        r"pack-objects died|index-pack (died|failed)|[Oo]ut of memory|(mmap|malloc|realloc|calloc) failed|memory exhausted",
        OPERATION_FAILED,
        f"git may use {MEMORY // 2**20:,} MB, and a file of this commit takes more: keep large files elsewhere, or in Git LFS",
    ),
    (r"transport '.*' not allowed", OPERATION_FAILED, "use https, ssh, http or file"),
    (
        r"^remote: (error: )?(GH\d+|GitLab|Gitea|Forgejo): |\[(remote )?rejected\](?!.*\(stale info\))",
        OPERATION_FAILED,
        "let the token push to this branch, by force too: a protection of branches may forbid it; the daemon tries again by itself",
    ),
)


def stalled(failure: CommandFailedError, address: str, doing: str) -> Stalled:
    """The exception to raise from the failure. doing: completes the message "cannot … ADDRESS", such as "read" or "fetch from"."""
    for pattern, reason, hint in _SIGNS:
        line = next((line for line in failure.stderr.splitlines() if re.search(pattern, line)), None)
        if line is not None:
            return Stalled(f"cannot {doing} {address}: {plain(line)}", reason=reason, hint=hint)
    return Stalled(
        f"cannot {doing} {address}: {failure.summary}",
        reason=OPERATION_FAILED,
        hint="check the address and the network; the daemon tries again by itself",
    )


_CONFIG = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.autocrlf", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("protocol.version", "2"),
    ("advice.detachedHead", "false"),
    ("pack.threads", "1"),  # each thread would take memory of its own
)
NETWORK = "https:http:ssh:file"
"""Allowed transports. `ext` is not among them, since it runs programs."""
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_NO_WORD = "Could not read from remote repository"
_LATEST = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())
_LONGEST_MESSAGE = 300
_MOST_MESSAGES = 1000
"""Commits whose messages are read after one poll."""
MOST_OUTPUT = 128 * 2**20
"""The most bytes of one command's output. The longest is the list of a large tree's objects."""


class CommandFailedError(Exception):
    """A git command failed. stderr: its messages without secrets. timeout: the limit in seconds, if it exceeded one. output: what
    it wrote before it ended by itself."""

    def __init__(
        self, verb: str, status: int, stderr: str, *, timeout: float | None = None, output: bytes = b""
    ) -> None:
        super().__init__(f"git {verb}: {' '.join(stderr.split())}")
        self.verb = verb
        self.status = status
        self.stderr = stderr
        self.timeout = timeout
        self.output = output

    @property
    def summary(self) -> str:
        """The line that says what is wrong, for a person."""
        if self.timeout is not None:
            return f"no answer within {self.timeout:g}s"
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:")) and _NO_WORD not in line]
        # ssh gives the reason in the line before git's own message.
        telling = telling or [before for before, line in pairwise(lines) if _NO_WORD in line]
        return plain((telling or lines[-1:] or [f"git {self.verb} ended with status {self.status}"])[0])


def plain(line: str) -> str:
    """A line of git's output as part of a sentence, without prefix and control characters."""
    line = re.sub(r"^(fatal|error|ERROR|remote): *", "", line.strip())
    # The sentence already names the address, and the rest of the line says what is wrong.
    line = re.sub(r"^unable to access '[^']*': |: Could(n't| not) connect to server$", "", line)
    return "".join(letter for letter in line if letter.isprintable())[:_LONGEST_MESSAGE]


class TooMuchOutputError(CommandFailedError):
    """A git command wrote more than the caller can hold, and was ended."""


class Commands:
    """Git on one repository. environment, config: added for every command to what is set here. secrets: removed from messages.

    timeout: seconds for one command, which is ended earlier if it is silent (`SILENCE`). network: whether anything may be fetched,
    even a blob that a partial clone lacks."""

    def __init__(
        self,
        git_dir: Path | None,
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        config: Sequence[tuple[str, str]] = (),
        secrets: Sequence[str] = (),
        network: bool = False,
    ) -> None:
        self.timeout = timeout
        self._secrets = tuple(secret for secret in secrets if secret)
        self.environment = {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "GCM_INTERACTIVE": "never",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_ALLOW_PROTOCOL": NETWORK if network else "none",
            "GIT_NO_LAZY_FETCH": "0" if network else "1",
            **_config_environment((*_CONFIG, *config)),
            **(environment or {}),
        }
        if git_dir is not None:
            # A Git hook that starts headroom has set these for its own repository.
            self.environment |= {"GIT_DIR": str(git_dir), "GIT_NAMESPACE": ""}

    def run(self, *arguments: str, feed: bytes | None = None, most: int = MOST_OUTPUT) -> bytes:
        """The command's output, of this many bytes at most. Raises CommandFailedError, and `Stalled` if git is not installed."""
        git = load_git()
        program = git.Git()
        process = program.execute(
            [*WITHIN_MEMORY, git.Git.GIT_PYTHON_GIT_EXECUTABLE or "git", *arguments],
            istream=None if feed is None else subprocess.PIPE,
            as_process=True,
            env=self.environment,
            start_new_session=True,
        )
        try:
            status, output, errors = result_of(process.proc, feed or b"", seconds=self.timeout, most=most)
        except OutOfTimeError as error:
            raise CommandFailedError(arguments[0], -1, "", timeout=error.seconds) from error
        except OutputTooLongError as error:
            raise TooMuchOutputError(arguments[0], -1, f"fatal: it writes more than {most // 2**20} MiB") from error
        if status == NOT_INSTALLED:
            raise _no_git()
        if status != 0:
            raise CommandFailedError(arguments[0], status, self._clean(errors), output=output)
        return output

    def succeeds(self, *arguments: str) -> bool:
        """Whether the command ends with status 0."""
        try:
            self.run(*arguments)
        except CommandFailedError:
            return False
        return True

    def line(self, *arguments: str) -> str:
        """The one line that the command wrote."""
        return self.run(*arguments).decode("utf-8", "surrogateescape").strip()

    def line_if_any(self, *arguments: str) -> str:
        """The one line that the command wrote; "" where it failed."""
        try:
            return self.line(*arguments)
        except CommandFailedError:
            return ""

    def _clean(self, errors: bytes) -> str:
        text = _USERINFO.sub("", errors.decode("utf-8", "replace"))
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def allows_removals(commands: Commands, commit: str, *, since: str | None) -> bool:
    """Whether a commit has the trailer `Headroom-Allow-Removals: true`. since: also one of those before it, back to this one.

    False where the messages cannot be read: then what is removed goes slowly.
    """
    range_of = ("--max-count=1", commit) if since is None else (f"--max-count={_MOST_MESSAGES}", commit, f"^{since}")
    try:
        values = commands.run("log", f"--format=%(trailers:key={REMOVALS_TRAILER},valueonly)", *range_of)
    except CommandFailedError:
        return False
    return any(line.strip().lower() == b"true" for line in values.splitlines())


def time_of(commands: Commands, commit: str) -> int:
    """The committer's time in seconds since 1970, which anybody may write; at most one that a `datetime` holds in every time zone. `git show`
    would also compare the tree with that of its parent, which a malicious tree can make endless."""
    written = int(commands.line("rev-list", "--max-count=1", "--timestamp", commit).partition(" ")[0])
    return min(written, _LATEST)


def load_git() -> ModuleType:
    """GitPython, imported on first use, since the import runs git. Raises `Stalled` if git is not installed."""
    try:
        import git
    except ImportError as error:
        raise _no_git() from error
    return git


def _no_git() -> Stalled:
    return Stalled("git is not installed", reason="GitOperationFailed", hint="install git and have it on PATH")


def person(**more: str) -> dict[str, str]:
    """Who makes headroom's commits, as variables of Git. more: further facts, such as DATE."""
    facts = {"NAME": "headroom", "EMAIL": "headroom@localhost", **more}
    return {f"GIT_{role}_{fact}": value for role in ("AUTHOR", "COMMITTER") for fact, value in facts.items()}


def new_objects_in(scratch: Path, plain: Commands) -> dict[str, str]:
    """Variables by which Git puts new objects into a folder of their own and finds the repository's too. plain: Git on the repository."""
    objects = plain.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
    quoted = objects.replace("\\", "\\\\").replace('"', '\\"')  # a colon in a path would separate two
    others = [f'"{quoted}"', *filter(None, [os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")])]
    return {"GIT_OBJECT_DIRECTORY": str(scratch), "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(others)}


def _config_environment(config: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Configuration as GIT_CONFIG_* variables, numbered after those already set. Unlike arguments, no process list shows them."""
    first = os.environ.get("GIT_CONFIG_COUNT", "0")
    start = int(first) if first.isdigit() else 0
    variables = {"GIT_CONFIG_COUNT": str(start + len(config))}
    for number, (key, value) in enumerate(config, start):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables
