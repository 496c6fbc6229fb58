"""Credentials never reach a log line."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.field_differences import differences
from reconciler.model.redaction import redacted
from reconciler.model.refs import path_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cloning https://bot:s3cret@git.example/r.git", "cloning https://***@git.example/r.git"),
        ("cloning https://s3cret@git.example/r.git", "cloning https://***@git.example/r.git"),
        ("header Authorization: Bearer abcdefgh.ijkl", "header Authorization: Bearer ***"),
        ("GET /r?access_token=abc123&page=2", "GET /r?access_token=***&page=2"),
        ("https://git.example/r.git?key=abc&page=2 does not answer", "https://git.example/r.git?*** does not answer"),
        ("GET /r?page=2&key=abc", "GET /r?page=2&key=***"),
        ("password: hunter2 was refused", "password: *** was refused"),
        ("pushed with ghp_0123456789abcdef", "pushed with ***"),
        ("pushed with github_pat_0123456789abcdef", "pushed with ***"),
        ("pushed with glpat-0123456789abcdef", "pushed with ***"),
        ("pushed with gto_0123456789abcdef", "pushed with ***"),
        ("BASIC 0123456789abcdef is refused", "BASIC *** is refused"),
        ("apiKey=abc", "apiKey=***"),
        ("eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl expired", "*** expired"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- end", "*** end"),
    ],
)
def test_credentials_inside_text_are_masked_and_the_rest_stays(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "main@sha1:0123456789abcdef0123456789abcdef01234567",
        "https://git.example/team@2/r.git",
        "NodeClaim/general-4f2 holds 3 chunks of CapacityBuffer/shop/web",
        "the secret is out of stock",
    ],
)
def test_what_is_no_credential_is_left_as_it_is(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("key", ["token", "git_token", "gitToken", "PASSWORD", "client-secret", "authorization"])
def test_the_value_of_a_telling_key_is_masked_whatever_it_is(key: str) -> None:
    assert redacted({key: "x"}) == {key: "***"}
    assert redacted({"outer": [{key: ["x", "y"]}]}) == {"outer": [{key: "***"}]}


def test_an_empty_credential_is_shown_as_empty() -> None:
    assert redacted({"token": "", "password": None}) == {"token": "", "password": None}


def test_a_key_that_only_names_a_file_is_shown() -> None:
    assert redacted({"token_file": "/run/token"}) == {"token_file": "/run/token"}


def test_numbers_keep_their_type_and_objects_are_masked_by_their_text() -> None:
    class Remote:
        def __str__(self) -> str:
            return "https://bot:s3cret@git.example/r.git"

    values: dict[str, Any] = {"count": 3, "share": 0.5, "ok": True, "remote": Remote()}
    assert redacted(values) == {"count": 3, "share": 0.5, "ok": True, "remote": "https://***@git.example/r.git"}


# What counts as a difference between a manifest and a live object, and what does not.


@pytest.mark.parametrize(
    ("declared", "live"),
    [
        ({"spec": {"weight": 10}}, {"spec": {"weight": 10, "limits": {"cpu": "4"}}, "status": {}}),
        ({"limits": {"cpu": 1, "memory": "1Gi"}}, {"limits": {"cpu": "1000m", "memory": "1024Mi"}}),
        ({"resources": {"requests": {"cpu": 0.5}}}, {"resources": {"requests": {"cpu": "500m"}}}),
        ({"totalCpu": 40}, {"totalCpu": "40"}),
        ({"expireAfter": "720h"}, {"expireAfter": "720h0m0s"}),
        ({"expireAfter": "Never"}, {"expireAfter": "Never"}),
        ({"list": [{"name": "a"}]}, {"list": [{"name": "a", "protocol": "TCP"}]}),
        ({"gone": None}, {}),
    ],
)
def test_equal_but_for_spelling_and_what_others_added(declared: dict[str, Any], live: dict[str, Any]) -> None:
    assert differences(declared, live) == ()


@pytest.mark.parametrize(
    ("declared", "live", "path", "before"),
    [
        ({"spec": {"weight": 10}}, {"spec": {"weight": 5}}, "spec.weight", 5),
        ({"spec": {"weight": 10}}, {}, "spec", None),
        ({"limits": {"cpu": "2"}}, {"limits": {"cpu": "1"}}, "limits.cpu", "1"),
        ({"nodes": "10"}, {"nodes": 10}, "nodes", 10),
        ({"on": True}, {"on": 1}, "on", 1),
        ({"budgets": []}, {}, "budgets", None),
        ({"list": ["a", "b"]}, {"list": ["b", "a"]}, "list[0]", "b"),
        ({"list": ["a"]}, {"list": ["a", "b"]}, "list", ["a", "b"]),
        ({"a": {"b.c/d": 1}}, {"a": {"b.c/d": 2}}, "a['b.c/d']", 2),
        ({"limits": {"cpu": "many"}}, {"limits": {"cpu": "1"}}, "limits.cpu", "1"),
    ],
)
def test_differences_are_named_by_path(
    declared: dict[str, Any], live: dict[str, Any], path: str, before: object
) -> None:
    first = differences(declared, live)[0]
    assert (first.path, first.before) == (path, before)


def test_empty_lists_and_maps_of_kubernetes_own_kinds_are_not_stored() -> None:
    assert differences({"volumes": [], "labels": {}}, {}, drops_empty=True) == ()


def test_paths_read_as_in_findings() -> None:
    assert path_text(("spec", "disruption", "budgets", 0, "nodes")) == "spec.disruption.budgets[0].nodes"
    assert (
        path_text(("metadata", "annotations", "headroom.dev/source")) == "metadata.annotations['headroom.dev/source']"
    )
