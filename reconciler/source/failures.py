"""The meaning of a failed git command: a condition reason, a sentence and a hint."""

from __future__ import annotations

import re

from reconciler.model.errors import Stalled
from reconciler.source.child import MEMORY
from reconciler.source.commands import CommandFailedError, plain

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
        r"repository .* not found|returned error: 404|does not appear to be a git repository|Repository not found",
        OPERATION_FAILED,
        "check the address; hosts also answer this when the credentials may not see the repository",
    ),
    (
        r"dubious ownership",
        OPERATION_FAILED,
        "let this user own the repository, or add it to safe.directory in git's configuration",
    ),
    (
        r"unadvertised object",
        OPERATION_FAILED,
        "name a branch or a tag: this server gives no other commits",
    ),
    (
        r"pack-objects died|index-pack (died|failed)|[Oo]ut of memory|(mmap|malloc|realloc|calloc) failed|memory exhausted",
        OPERATION_FAILED,
        f"git may use {MEMORY // 2**20:,} MB, and a file of this commit takes more: keep large files elsewhere, or in Git LFS",
    ),
    (r"transport '.*' not allowed", OPERATION_FAILED, "use https, ssh, http, git or file"),
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
