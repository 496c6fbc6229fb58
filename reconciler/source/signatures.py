"""Whether a commit was signed by somebody who may. Used by git and by revision, when allowed signers are set."""

from __future__ import annotations

import base64
import binascii
import re
import tempfile
from pathlib import Path

from reconciler.model.errors import Stalled
from reconciler.source.commands import CommandFailedError, Commands

SIGNATURE_FAILED = "SignatureVerificationFailed"
_ARMORED_KEYS = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\s*?\n(?:[^\n]*:[^\n]*\n)*\s*\n(.*?)(?:\n=[^\n]*)?\n-----END PGP PUBLIC KEY BLOCK-----",
    re.DOTALL,
)


def verify_signature(folder: Path, commit: str, allowed_signers: Path, *, timeout: float) -> None:
    """Returns when the commit's signature is good and by an allowed signer; raises `Stalled` when not, and when it cannot
    be told.

    allowed_signers: OpenSSH's format (see ALLOWED SIGNERS in ssh-keygen's manual), armored OpenPGP public keys, or
    both, read anew each time. Only this file decides: the keys and settings of the user who runs headroom count for nothing.
    """
    try:
        text = allowed_signers.read_bytes()
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
                ("gpg.x509.program", "false"),  # no list of ours could allow a certificate
            ),
        )
        _verify(commands, commit)


def _verify(commands: Commands, commit: str) -> None:
    try:
        commands.run("verify-commit", commit)
    except CommandFailedError as error:
        why = f": {' '.join(error.stderr.split())}" if error.stderr.strip() else ""
        raise Stalled(
            f"commit {commit[:12]} is not signed by an allowed signer{why}",
            reason=SIGNATURE_FAILED,
            hint="sign it with an allowed key, or add the signer to git.allowedSigners",
            causes=(error,),
        ) from error


def _openpgp_keys(text: bytes) -> bytes:
    """The keys of every armored block as one binary keyring; empty when there is none."""
    try:
        return b"".join(base64.b64decode(match[1]) for match in _ARMORED_KEYS.finditer(text.replace(b"\r\n", b"\n")))
    except binascii.Error as error:
        raise Stalled("the OpenPGP keys of allowed signers are damaged", reason=SIGNATURE_FAILED) from error
