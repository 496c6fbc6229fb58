"""Webhooks count only when they are signed with the secret, whatever they say."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable

import pytest

from reconciler.forge.forges import UnsignedError, read_webhook
from reconciler.forge.kind import PullRequestEvent, Push, WebhookEvent
from reconciler.model.errors import Invalid

SECRET = "between-us"
PUSH = json.dumps({"ref": "refs/heads/main", "after": "c" * 40}).encode()


def digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(event: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"x-github-event": event, "x-hub-signature-256": f"sha256={digest(body, secret)}"}


def gitea(event: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {**github(event, body, secret), "x-gitea-event": event, "x-gitea-signature": digest(body, secret)}


def gitlab(event: str, _body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"x-gitlab-event": event, "x-gitlab-token": secret}


@pytest.mark.parametrize(
    ("headers", "event"), [(github, "push"), (gitea, "push"), (gitlab, "Push Hook")], ids=["github", "gitea", "gitlab"]
)
def test_a_push_is_of_a_branch(headers: Callable[..., dict[str, str]], event: str) -> None:
    assert read_webhook(headers(event, PUSH), PUSH, SECRET) == Push("main")
    with pytest.raises(UnsignedError):
        read_webhook(headers(event, PUSH, "another"), PUSH, SECRET)
    with pytest.raises(UnsignedError):
        read_webhook(headers(event, PUSH, ""), PUSH, "")


@pytest.mark.parametrize(
    ("document", "headers", "event"),
    [
        ({"ref": "refs/tags/v1"}, github("push", b""), Push("")),
        ({"number": 7, "action": "opened"}, github("pull_request", b""), PullRequestEvent(7)),
        ({"pull_request": {"number": 7}}, gitea("pull_request_sync", b""), PullRequestEvent(7)),
        ({"object_attributes": {"iid": 7}}, gitlab("Merge Request Hook", b""), PullRequestEvent(7)),
        ({"zen": "Keep it logically awesome."}, github("ping", b""), None),
        ({"object_kind": "note"}, gitlab("Note Hook", b""), None),
    ],
)
def test_what_is_announced(document: dict[str, object], headers: dict[str, str], event: WebhookEvent | None) -> None:
    body = json.dumps(document).encode()
    signed = {name: value.replace(digest(b""), digest(body)) for name, value in headers.items()}
    assert read_webhook(signed, body, SECRET) == event


@pytest.mark.parametrize("change", [b"x", b" "])
def test_one_byte_more_is_not_what_was_signed(change: bytes) -> None:
    with pytest.raises(UnsignedError):
        read_webhook(github("push", PUSH), PUSH + change, SECRET)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-github-event": "push"},
        {"x-github-event": "push", "x-hub-signature-256": digest(PUSH)},  # without its prefix
        {"x-github-event": "push", "x-hub-signature": "sha1=" + "0" * 40},
        {**github("push", PUSH), "x-gitea-event": "push"},  # claims to be Gitea's, but is not signed as such
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": "bétween-us"},
    ],
)
def test_anything_less_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UnsignedError):
        read_webhook(headers, PUSH, SECRET)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"ref": ', b"[" * 100_000, b"\xff", b'"push"'])
def test_a_signed_body_that_is_none_is_invalid(body: bytes) -> None:
    with pytest.raises(Invalid) as told:
        read_webhook(github("push", body), body, SECRET)
    assert not isinstance(told.value, UnsignedError)
