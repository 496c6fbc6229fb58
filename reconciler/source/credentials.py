"""Credentials for a remote: read again for each poll, and passed to git in its environment, never in arguments."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from reconciler.files import read_secret
from reconciler.model.errors import Invalid, Stalled
from reconciler.network import is_open_to_listeners
from reconciler.report.escaping import without_url_secrets

TOKEN_VARIABLE = "HEADROOM_GIT_TOKEN"  # noqa: S105 - the name of a variable
_ANY_USER = "x-access-token"
"""GitHub expects this user with an app's token. Other hosts accept any user with a token."""
_SHORTEST_TOKEN = 20
"""A user of this length without a password is a token (`https://TOKEN@host/…`)."""
_SCHEMES = ("https", "http", "ssh", "file")


@dataclass(frozen=True, slots=True)
class GitOptions:
    """The settings of Git: the copy of a repository, how it is kept up to date, and with which options.

    interval: the time between polls, with 5% jitter. timeout: for each git command. state: folder for shallow copies and the last good
    commits, which several repositories may share; "" for a temporary one. rewind_hold: how long nothing is pruned or released after a
    force-push.
    token_file: a file with the token or password, read for every poll; without one the variable HEADROOM_GIT_TOKEN counts.
    ssh_key, known_hosts: paths; without them ssh uses its own. plain_http: whether a token may be sent unencrypted, to any host.
    allowed_signers: a file, "" for none. With one, every commit since the last good one must be signed by one of them, or nothing is
    taken.
    """

    interval: timedelta = timedelta(minutes=1)
    timeout: timedelta = timedelta(minutes=1)
    state: str | Path = ""
    username: str = ""
    token_file: str = ""
    ssh_key: str = ""
    known_hosts: str = ""
    allowed_signers: str | Path = ""
    plain_http: bool = False
    rewind_hold: timedelta = timedelta(minutes=10)

    @property
    def seconds(self) -> float:
        """The time limit of a git command."""
        return self.timeout.total_seconds()


@dataclass(frozen=True, slots=True)
class Authorization:
    """Environment and configuration of git for one poll. secrets: removed from messages."""

    environment: Mapping[str, str]
    config: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """A remote's URL without user and password. In an ssh URL the user stays, since it is part of the address."""

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
    def shown(self) -> str:
        """The URL as messages show it: a query may hold a token."""
        return without_url_secrets(self.url)

    @property
    def origin(self) -> str:
        """`https://host:port/`: the scope of an authorization."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"


def parse_address(repository: str) -> Address:
    """The address. Raises `Invalid` for a URL that git must not get, such as one that would run a program."""
    if "://" not in repository:
        if repository.startswith("-") or "::" in repository:
            raise Invalid(f"{repository.partition('::')[0]} is not a host", hint="write git@host:path or a URL")
        return Address(repository)
    try:
        parts = urlsplit(repository)
    except ValueError as error:
        raise Invalid(f"the repository's URL cannot be read: {error}", hint="write https://host/path.git") from error
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if parts.scheme not in _SCHEMES:
        raise Invalid(
            f"{without_url_secrets(shown)}: {parts.scheme}:// is not supported",
            hint=f"write one of {', '.join(_SCHEMES)} before ://",
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


def authorize(address: Address, options: GitOptions) -> Authorization:
    """The authorization, from files read again. Raises `Stalled` if a file cannot be read or the token would be sent unencrypted."""
    if address.is_ssh:
        return Authorization({"GIT_SSH_COMMAND": ssh_command(options), "GIT_SSH_VARIANT": "ssh"})
    if not address.is_http:
        return Authorization({})
    found = read_secret(options.token_file, (TOKEN_VARIABLE,), what="token", setting="git.tokenFile")
    token = found or address.password
    username = options.username or address.username
    if not token:
        return Authorization({})
    if is_open_to_listeners(address.url) and not options.plain_http:
        raise Stalled(
            f"the token for {address.origin} is not sent over plain http",
            reason="AuthenticationFailed",
            hint="write https, or set git.plainHttp when the network between is trusted",
        )
    basic = base64.b64encode(f"{username or _ANY_USER}:{token}".encode()).decode()
    return Authorization(
        environment={},
        # For this host alone, so that a redirect does not carry it elsewhere. No credential helper is asked.
        config=((f"http.{address.origin}.extraHeader", f"Authorization: Basic {basic}"), ("credential.helper", "")),
        secrets=(token, basic),
    )


def ssh_command(options: GitOptions) -> str:
    """The ssh command for git, which never prompts and never trusts an unknown host. It extends GIT_SSH_COMMAND if that is set."""
    words = [
        *("-o", "BatchMode=yes"),
        *("-o", "StrictHostKeyChecking=yes"),
        *("-o", "ConnectTimeout=20"),
        *("-o", "ServerAliveInterval=15"),
        *("-o", "ServerAliveCountMax=2"),
    ]
    if options.known_hosts:
        words += ["-o", f"UserKnownHostsFile={options.known_hosts}", "-o", f"GlobalKnownHostsFile={os.devnull}"]
    if options.ssh_key:
        words += ["-i", options.ssh_key, "-o", "IdentitiesOnly=yes"]
    return f"{os.environ.get('GIT_SSH_COMMAND') or 'ssh'} {shlex.join(words)}"
