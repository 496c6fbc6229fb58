"""Whether every commit since the last good one was signed by an allowed signer."""

from __future__ import annotations

import base64
import binascii
import re
import tempfile
from pathlib import Path

from reconciler.files import read_named_file
from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, Commands
from reconciler.source.credentials import GitOptions

SIGNATURE_FAILED = "SignatureVerificationFailed"
_MOST = 5_000
_AT_ONCE = 100
"""How many commits one command verifies, which must end within the time limit."""
_ARMORED_KEYS = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\s*?\n(?:[^\n:]*:[^\n]*\n)*\s*\n(.*?)(?:\n=[^\n]*)?\n-----END PGP PUBLIC KEY BLOCK-----",
    re.DOTALL,
)


def verify_signatures(folder: Path, commit: str, options: GitOptions, *, since: str | None) -> None:
    """Returns if every commit has a good signature of an allowed signer, or the options name none. Raises `Stalled` if not, or if that
    cannot be determined.

    since: the last good commit. Every ancestor of `commit` that is not one of `since` is verified. A signature on the last alone
    would vouch for whatever somebody else had pushed below it. None: there is no good commit yet, and only `commit` is verified.
    folder: a repository with the commits; it needs no trees.

    `options.allowed_signers`: OpenSSH's format (see ALLOWED SIGNERS in ssh-keygen's manual), armored OpenPGP public keys, or both, read again
    each time. Only this file decides. The keys and settings of the user who runs headroom are ignored.
    """
    if not options.allowed_signers:
        return
    allowed_signers, timeout = Path(options.allowed_signers), options.seconds
    commits = [commit]
    if since is not None:
        commits = _between(Commands(folder, timeout=timeout), since, commit) or commits
    try:
        text = read_named_file(allowed_signers)
    except OSError as error:
        raise Stalled(
            f"allowed signers {allowed_signers} cannot be read ({error.strerror})",
            reason=SIGNATURE_FAILED,
            hint="set git.allowedSigners to a file of allowed signers, or leave it empty to accept unsigned commits",
        ) from error
    with tempfile.TemporaryDirectory(prefix="headroom-keys-") as home:
        ring = Path(home, "allowed.gpg")
        ring.write_bytes(_openpgp_keys(text))
        Path(home, "gpg.conf").write_text(f"no-default-keyring\nkeyring {ring}\ntrust-model always\nno-autostart\n")
        commands = Commands(
            folder,
            timeout=timeout,
            environment={"GNUPGHOME": home},
            config=(
                ("gpg.ssh.allowedSignersFile", str(allowed_signers.absolute())),
                ("gpg.program", "gpg"),
                ("gpg.ssh.program", "ssh-keygen"),
                ("gpg.x509.program", "false"),  # allowed_signers cannot list certificates
            ),
        )
        for begin in range(0, len(commits), _AT_ONCE):
            _verify(commands, commits[begin : begin + _AT_ONCE])


def _between(commands: Commands, since: str, commit: str) -> list[str]:
    """The commits to verify, oldest first; none if all were verified before, as on a branch that was set back."""
    if not commands.succeeds("cat-file", "-e", f"{since}^{{commit}}"):
        return []  # the history was rewritten and the last good commit is lost, so start again
    try:
        commits = commands.line("rev-list", "--reverse", f"--max-count={_MOST + 1}", commit, f"^{since}").split()
    except CommandFailedError as error:
        raise _not_verified(
            f"the commits from {since[:12]} to {commit[:12]} cannot be listed: {error.summary}"
        ) from error
    if len(commits) > _MOST:
        raise Stalled(
            f"more than {_MOST:,} commits came since {since[:12]}, too many to verify at once",
            reason=SIGNATURE_FAILED,
            hint="remove the folder of git.state to start again with the newest commit, once you have looked at them",
        )
    return commits


def _verify(commands: Commands, commits: list[str]) -> None:
    """Verifies all in one command. If that fails, verifies them one by one to name the first bad one."""
    try:
        commands.run("verify-commit", *commits)
    except CommandFailedError as error:
        if len(commits) > 1:
            for commit in commits:
                _verify(commands, [commit])
        why = f": {' '.join(error.stderr.split())}" if error.stderr.strip() else ""
        raise _not_verified(f"commit {commits[0][:12]} is not signed by an allowed signer{why}") from error


def _not_verified(message: str) -> Stalled:
    return Stalled(
        message,
        reason=SIGNATURE_FAILED,
        hint="sign it with an allowed key, add the signer to git.allowedSigners, or take the commit out of the branch",
    )


def _openpgp_keys(text: bytes) -> bytes:
    """The keys of all armored blocks as one binary keyring; empty if there are none."""
    try:
        return b"".join(base64.b64decode(match[1]) for match in _ARMORED_KEYS.finditer(text.replace(b"\r\n", b"\n")))
    except binascii.Error as error:
        raise Stalled("the OpenPGP keys of allowed signers are damaged", reason=SIGNATURE_FAILED) from error
