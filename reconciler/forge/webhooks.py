"""Reads webhooks of GitHub, GitLab and Gitea after verifying the sender."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.errors import Invalid


class UnsignedError(Invalid):
    """The sender does not have the secret."""


@dataclass(frozen=True, slots=True)
class Push:
    """A push. branch: the one pushed to; "" for a tag."""

    branch: str


@dataclass(frozen=True, slots=True)
class PullRequestEvent:
    """A pull request was opened, changed or closed."""

    number: int


Event = Push | PullRequestEvent
_BRANCH = "refs/heads/"


def read_webhook(headers: Mapping[str, str], body: bytes, secret: str) -> Event | None:
    """The event; None for others, such as the forge's first test. headers: by name in lower case.

    Raises `UnsignedError`, and `Invalid` for a body that does not fit its headers. The body is parsed only after its signature was
    verified.
    """
    kind = _verified(headers, body, secret)
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise Invalid("the webhook's body is not an object")
        if kind in {"push", "Push Hook"}:
            ref = str(document["ref"])
            return Push(ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else "")
        if kind == "Merge Request Hook":
            return PullRequestEvent(int(document["object_attributes"]["iid"]))
        if kind.startswith("pull_request"):
            return PullRequestEvent(_number(document))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Invalid("the webhook's body is not what its header says") from error
    return None


def _number(document: dict[str, Any]) -> int:
    return int(document["number"] if "number" in document else document["pull_request"]["number"])


def _verified(headers: Mapping[str, str], body: bytes, secret: str) -> str:
    """Verifies the signature; returns the forge's name of the event. Gitea sends GitHub's headers too, so its own come first."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    proofs = (
        ("x-gitea-event", "x-gitea-signature", digest),
        ("x-github-event", "x-hub-signature-256", f"sha256={digest}"),
        ("x-gitlab-event", "x-gitlab-token", secret),
    )
    for event, header, expected in proofs:
        if event in headers:
            if secret and hmac.compare_digest(headers.get(header, "").encode(), expected.encode()):
                return headers[event]
            break
    raise UnsignedError("the webhook is not signed with the secret")
