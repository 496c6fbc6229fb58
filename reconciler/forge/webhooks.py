"""What a webhook of GitHub, GitLab or Gitea says, once it is certain who sent it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.errors import Invalid


class UnsignedError(Invalid):
    """Whoever sent it does not have the secret."""


@dataclass(frozen=True, slots=True)
class Push:
    """branch: that was pushed to; "" for a tag."""

    branch: str


@dataclass(frozen=True, slots=True)
class PullRequestEvent:
    """A pull request was opened, changed or closed."""

    number: int


Event = Push | PullRequestEvent
_BRANCH = "refs/heads/"


def read_webhook(headers: Mapping[str, str], body: bytes, secret: str) -> Event | None:
    """headers: by name in lower case. None for what is of no interest, such as the forge's first test.

    Raises `UnsignedError`, and `Invalid` for a body that is not what the headers say. Nothing of a body is looked at before
    its signature.
    """
    kind = _verified(headers, body, secret)
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise Invalid("the webhook's body is no object")
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
    """The event's name as the forge calls it. Gitea sends GitHub's headers too: its own come first."""
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
