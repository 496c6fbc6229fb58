"""Running git itself, with a time limit and nothing that could prompt, run a hook or load a submodule. Used by the git modules.

GitPython starts the processes. Its own time limit kills only the children that it finds by then; a process group of its
own is ended here as a whole, since `git fetch` waits for helpers that hang on the network.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from reconciler.model.errors import Stalled

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
)
NETWORK = "https:http:ssh:git:file"
"""What may be fetched from; above all not `ext`, which runs programs."""
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_NO_WORD = "Could not read from remote repository"
_LONGEST_MESSAGE = 300


class CommandFailedError(Exception):
    """A git command ended badly. stderr: what it said, secrets removed; timeout: seconds when it was ended for that."""

    def __init__(self, verb: str, status: int, stderr: str, *, timeout: float | None = None) -> None:
        super().__init__(f"git {verb}: {stderr}")
        self.verb = verb
        self.status = status
        self.stderr = stderr
        self.timeout = timeout

    @property
    def summary(self) -> str:
        """The line that says what is wrong, for a person."""
        if self.timeout is not None:
            return f"no answer within {self.timeout:g}s"
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:")) and _NO_WORD not in line]
        # ssh says why in the line before git's own
        telling = telling or [before for before, line in pairwise(lines) if _NO_WORD in line]
        return plain((telling or lines[-1:] or [f"git {self.verb} ended with status {self.status}"])[0])


def plain(line: str) -> str:
    """One line of git's as part of a sentence: without its prefix and without what a terminal would act on."""
    line = re.sub(r"^(fatal|error|ERROR|remote): *", "", line.strip())
    return "".join(letter for letter in line if letter.isprintable())[:_LONGEST_MESSAGE]


class Commands:
    """git on one repository. environment, config: laid over what is set here for every command; secrets: texts that no
    message may contain; timeout: seconds for one command; network False: nothing may be fetched, not even a blob that
    a partial clone lacks."""

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
        self._timeout = timeout
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
            # also when headroom itself was started by a Git hook, which sets these for its own repository
            self.environment |= {"GIT_DIR": str(git_dir), "GIT_NAMESPACE": ""}

    def run(self, *arguments: str, feed: bytes | None = None) -> bytes:
        """What the command wrote. Raises CommandFailedError, and `Stalled` where there is no git."""
        git = load_git()
        program = git.Git()
        try:
            process = program.execute(
                [git.Git.GIT_PYTHON_GIT_EXECUTABLE or "git", *arguments],
                istream=None if feed is None else subprocess.PIPE,
                as_process=True,
                env=self.environment,
                start_new_session=True,
            )
        except git.GitCommandNotFound as error:
            raise _no_git() from error
        try:
            output, errors = process.communicate(feed, timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            raise CommandFailedError(arguments[0], -1, "", timeout=self._timeout) from error
        finally:
            _end(process.pid, running=process.returncode is None)
            if process.returncode is None:
                process.communicate()
        if process.returncode != 0:
            raise CommandFailedError(arguments[0], process.returncode, self._clean(errors))
        return bytes(output)

    def line(self, *arguments: str) -> str:
        """The one line that the command wrote."""
        return self.run(*arguments).decode("utf-8", "surrogateescape").strip()

    def _clean(self, errors: bytes) -> str:
        text = _USERINFO.sub("", errors.decode("utf-8", "replace"))
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def load_git() -> ModuleType:
    """GitPython, imported where it is first needed: it starts git to learn its version. Raises `Stalled` without git."""
    try:
        import git  # noqa: PLC0415 - see above
    except ImportError as error:
        raise _no_git() from error
    return git


def _no_git() -> Stalled:
    return Stalled("the git program is not there", reason="GitOperationFailed", hint="install git and have it on PATH")


def _end(group: int, *, running: bool) -> None:
    """Ends a process group. After its leader has gone by itself there is nothing left to wait for, and nothing to end."""
    if running:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _config_environment(config: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Configuration as GIT_CONFIG_* variables, after those that are there already: nothing of it shows in a process list."""
    first = os.environ.get("GIT_CONFIG_COUNT", "0")
    start = int(first) if first.isdigit() else 0
    variables = {"GIT_CONFIG_COUNT": str(start + len(config))}
    for number, (key, value) in enumerate(config, start):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables
