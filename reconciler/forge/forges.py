"""All forges: which one is meant, opened with its token, linked to and heard. What differs between them is in their own files."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from importlib import import_module
from urllib.parse import urlsplit

from reconciler.files import read_secret
from reconciler.forge import FORGES
from reconciler.forge.kind import ForgeKind, WebhookEvent
from reconciler.model.errors import Invalid, Stalled
from reconciler.network import is_open_to_listeners
from reconciler.ports import Forge
from reconciler.report.escaping import uri_path
from reconciler.report.status.document import Links

TOKEN_VARIABLE = "HEADROOM_FORGE_TOKEN"  # noqa: S105 - the name of a variable
_SSH_SHORT = re.compile(r"(?:[^/@:]+@)?(?P<host>[A-Za-z0-9.-]+):(?!//)(?P<path>.+)")


class UnsignedError(Invalid):
    """The sender does not have the secret."""


def kind_of(name: str) -> ForgeKind:
    """The forge of that name in `FORGES`, as its file has it. Raises `Invalid` for any other name."""
    if name not in FORGES:
        raise Invalid(f"{name!r} is not a forge", hint=f"write one of {', '.join(FORGES)}")
    kind: ForgeKind = import_module(f"reconciler.forge.{name}").KIND
    return kind


def forge_token(kind: str, token_file: str = "") -> str:
    """The token, read again at each call. Raises `Stalled` if there is none."""
    names = (TOKEN_VARIABLE, *kind_of(kind).tokens)
    token = read_secret(token_file, names, what="token", setting="forge.tokenFile")
    if not token and not token_file:
        raise Stalled(
            f"there is no token for {kind}",
            reason="AuthenticationFailed",
            hint=f"set {' or '.join(names[:2])} to a token that may comment on pull requests",
        )
    return token


def open_forge(kind: str, *, repository: str, token: str, api: str = "", plain_http: bool = False) -> Forge:
    """repository: `OWNER/NAME`, or GitLab's path or number. api: its root, if it is not the public one. plain_http: whether the token
    may be sent unencrypted, to any host.

    Raises `Invalid` for what cannot be asked anything.
    """
    check_forge(kind, repository=repository, api=api, plain_http=plain_http)
    return kind_of(kind).open(repository, token, api)


def check_forge(name: str, *, repository: str, api: str = "", plain_http: bool = False) -> None:
    """The same checks as `open_forge`, without a token."""
    kind = kind_of(name)
    if not repository:
        raise Invalid(
            f"it is not known which repository on {name} is meant: forge.repository is empty",
            hint=f"set it, or HEADROOM_FORGE_REPOSITORY, to {kind.repository_words}; in CI {kind.repository_variable} has it",
        )
    if kind.is_owner_and_name and repository.count("/") != 1:
        raise Invalid(
            f"{repository!r} is not a repository on {name}", hint=f"set forge.repository to {kind.repository_words}"
        )
    if kind.api_words and not api:
        raise Invalid(
            f"it is not known where {name.capitalize()} is: forge.api is empty",
            hint=f"set it, or HEADROOM_FORGE_API, to {kind.api_words}",
        )
    if api:
        _check_address(api, plain_http=plain_http)


def _check_address(api: str, *, plain_http: bool) -> None:
    parts = urlsplit(api)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        raise Invalid(
            "forge.api is not the address of an API", hint="write https://HOST/api/v1, with no user and no token"
        )
    if not plain_http and is_open_to_listeners(api):
        raise Invalid(
            f"the token for {parts.hostname} is not sent over plain http",
            hint="write https, or set git.plainHttp when the network between is trusted",
        )


def _place_of(remote: str) -> tuple[str, str, str]:
    """Scheme in a browser, host with port, and path of a remote's URL or ssh's short form; "" for what it has not."""
    short = _SSH_SHORT.fullmatch(remote) if "://" not in remote else None
    if short is not None:
        return "https", short["host"].lower(), short["path"]
    try:
        parts = urlsplit(remote)
        port = parts.port if parts.scheme in {"http", "https"} else None
    except ValueError:
        return "", "", ""
    if parts.scheme not in {"http", "https", "ssh", "git"} or not parts.hostname:
        return "", "", ""
    scheme = "http" if parts.scheme == "http" else "https"
    return scheme, f"{parts.hostname}:{port}" if port else parts.hostname, parts.path


def name_of(remote: str) -> str:
    """The forge by the name of a remote's host, such as `gitlab` of `git@gitlab.example.com:platform/capacity.git`; "" where it tells none."""
    _, host, _ = _place_of(remote)
    return next((name for name in FORGES if any(word in host for word in kind_of(name).hosts)), "")


def is_of_a_fork(environment: Mapping[str, str]) -> bool:
    """Whether these variables are of a CI job for a fork's pull request, on any forge."""
    return any(kind_of(name).job(environment).from_fork for name in FORGES)


def links_to(repository: str, forge: str = "") -> Links:
    """repository: its URL, or ssh's short form. forge: if the settings name one; otherwise the host tells. No links to other hosts."""
    scheme, host, path = _place_of(repository)
    name, path = forge or name_of(repository), path.strip("/").removesuffix(".git")
    if not (host and name and path):
        return Links()
    kind = kind_of(name)
    return Links(f"{scheme}://{host}/{uri_path(path)}", kind.commit_page, kind.file_page)


def read_webhook(headers: Mapping[str, str], body: bytes, secret: str) -> WebhookEvent | None:
    """The event; None for others, such as the forge's first test. headers: by name in lower case.

    Raises `UnsignedError`, and `Invalid` for a body that does not fit its headers. The body is parsed only after its signature was
    verified.
    """
    sent = (kind_of(name).webhooks for name in reversed(FORGES))
    form = next((form for form in sent if form.event in headers), None)
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    proof = "" if form is None else form.proof_of(secret, digest)
    if form is None or not (secret and hmac.compare_digest(headers.get(form.proof, "").encode(), proof.encode())):
        raise UnsignedError("the webhook is not signed with the secret")
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise Invalid("the webhook's body is not an object")
        return form.read(headers[form.event], document)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Invalid("the webhook's body is not what its header says") from error
