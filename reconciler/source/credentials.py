"""How a remote is authorized: read anew for each poll, handed to git in its environment, never in arguments. Used by remote."""

from __future__ import annotations

import base64
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from reconciler.model.errors import Invalid, Stalled

TOKEN_VARIABLE = "HEADROOM_GIT_TOKEN"  # noqa: S105 - the name of a variable
_ANY_USER = "x-access-token"
"""GitHub asks for this user beside an app's token; the other hosts take any user beside a token."""
_SHORTEST_TOKEN = 20
"""A longer user without a password is a token written alone (`https://TOKEN@host/…`); a shorter one is a user."""
_SSH_SHORT = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//).+")
_SCHEMES = ("https", "http", "ssh", "git", "file")


@dataclass(frozen=True, slots=True)
class Credentials:
    """token_file: a file whose text is the token or password, read for every poll; without one the variable
    HEADROOM_GIT_TOKEN. ssh_key, known_hosts: paths; without them ssh uses its own."""

    username: str = ""
    token_file: str = ""
    ssh_key: str = ""
    known_hosts: str = ""


@dataclass(frozen=True, slots=True)
class Authorization:
    """What git is told for one poll. secrets: texts that no message may contain."""

    environment: Mapping[str, str]
    config: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """A remote's URL, what was written in it as user and password taken out (for ssh the user stays: it is an address)."""

    url: str
    username: str = ""
    password: str = ""

    @property
    def is_http(self) -> bool:
        return self.url.startswith(("https://", "http://"))

    @property
    def is_ssh(self) -> bool:
        return self.url.startswith("ssh://") or "://" not in self.url

    @property
    def origin(self) -> str:
        """`https://host:port/`: what an authorization is for, and nothing beyond."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"


def is_remote(repository: str) -> bool:
    """Whether this is a URL, or the short form of one for ssh (`git@host:group/repository.git`), not a path."""
    return "://" in repository or bool(_SSH_SHORT.fullmatch(repository))


def parse_address(repository: str) -> Address:
    """Raises `Invalid` for a URL that git cannot be let near."""
    if "://" not in repository:
        if repository.startswith("-") or "::" in repository:
            raise Invalid(f"{repository.partition('::')[0]} is no host", hint="write git@host:path or a URL")
        return Address(repository)
    try:
        parts = urlsplit(repository)
    except ValueError as error:
        raise Invalid(f"the repository's URL cannot be read: {error}", hint="write https://host/path.git") from error
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if parts.scheme not in _SCHEMES:
        raise Invalid(
            f"{shown}: {parts.scheme}:// is not supported", hint=f"write one of {', '.join(_SCHEMES)} before ://"
        )
    if parts.scheme == "ssh":
        password_free = f"{parts.username}@" if parts.username else ""
        return Address(parts._replace(netloc=password_free + parts.netloc.rpartition("@")[2]).geturl())
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password:
        return Address(shown, username, password)
    if len(username) >= _SHORTEST_TOKEN:
        return Address(shown, password=username)
    return Address(repository if username else shown, username)


def authorize(address: Address, credentials: Credentials) -> Authorization:
    """What git needs to be let in, as things stand now. Raises `Stalled` when a file of it cannot be read."""
    if address.is_ssh:
        return Authorization({"GIT_SSH_COMMAND": ssh_command(credentials), "GIT_SSH_VARIANT": "ssh"})
    if not address.is_http:
        return Authorization({})
    token = _token(credentials) or address.password
    username = credentials.username or address.username
    if not token:
        return Authorization({})
    basic = base64.b64encode(f"{username or _ANY_USER}:{token}".encode()).decode()
    return Authorization(
        environment={},
        # only for this host, so that a redirect does not carry it elsewhere; no helper is asked for another one
        config=(
            (f"http.{address.origin}.extraHeader", f"Authorization: Basic {basic}"),
            ("credential.helper", ""),
        ),
        secrets=(token, basic),
    )


def _token(credentials: Credentials) -> str:
    if not credentials.token_file:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        return Path(credentials.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise Stalled(
            f"token file {credentials.token_file} cannot be read ({why})",
            reason="AuthenticationFailed",
            hint="set git.tokenFile to a file with the token alone",
        ) from error


def ssh_command(credentials: Credentials) -> str:
    """The ssh command for git: never asks, never trusts a host for the first time.

    A GIT_SSH_COMMAND that is set already is built upon.
    """
    words = [
        *("-o", "BatchMode=yes"),
        *("-o", "StrictHostKeyChecking=yes"),
        *("-o", "ConnectTimeout=20"),
        *("-o", "ServerAliveInterval=15"),
        *("-o", "ServerAliveCountMax=2"),
    ]
    if credentials.known_hosts:
        words += ["-o", f"UserKnownHostsFile={credentials.known_hosts}", "-o", f"GlobalKnownHostsFile={os.devnull}"]
    if credentials.ssh_key:
        words += ["-i", credentials.ssh_key, "-o", "IdentitiesOnly=yes"]
    return f"{os.environ.get('GIT_SSH_COMMAND') or 'ssh'} {shlex.join(words)}"
