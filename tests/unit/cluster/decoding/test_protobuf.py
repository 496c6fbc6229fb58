"""Lists in protobuf. The recorded page is an API server's (1.36); tests/integration holds every field against a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cluster.connection import Answer
from reconciler.cluster.decoding.protobuf import page_of
from reconciler.cluster.resources import PODS
from reconciler.cluster.view import ViewStore
from reconciler.cluster.watch import pages_of
from reconciler.model.errors import Invalid
from tests.unit.cluster.scripted_server import Reply, Script, serving

RECORDED = Path(__file__).with_name("pods.protobuf").read_bytes()
AS_JSON = Path(__file__).with_name("pods.json").read_bytes()
UNAUTHORIZED = (
    b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x120\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure"
    b'\x1a\x0cUnauthorized"\x0cUnauthorized0\x91\x03\x1a\x00"\x00'
)


def stored(body: bytes) -> ViewStore:
    store = ViewStore()
    with serving(Script([Reply(body=body)])) as connection:
        page = next(pages_of(connection, "/api/v1/pods", PODS))
        store.replace(PODS, page.items)
    return store


def test_a_recorded_page_is_what_its_json_is() -> None:
    view = stored(RECORDED).view()
    assert (view.complete, len(view.pods)) == (True, 1)
    assert view.pods == stored(AS_JSON).view().pods


@pytest.mark.parametrize(
    "data", [RECORDED[:-9], b"k8s\0\xff", RECORDED[:700]], ids=["cut", "not protobuf", "cut early"]
)
def test_a_damaged_page_is_no_list(data: bytes) -> None:
    with pytest.raises(Invalid, match="is not the protobuf of an API server"):
        page_of(PODS, data)


def test_a_pod_that_headroom_fails_on_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise ValueError("a planted fault")

    monkeypatch.setattr("reconciler.cluster.decoding.pods.object_of", broken)
    name = stored(AS_JSON).view().pods[0].name
    gap = f"Pod/team-0/{name} cannot be read: headroom failed on it (ValueError: a planted fault)"
    assert stored(RECORDED).view().gaps == (gap,)


def test_a_refusal_is_told_in_the_servers_words() -> None:
    refused = Answer(401, UNAUTHORIZED).failure()
    assert (refused.message, refused.reason, refused.code) == ("Unauthorized", "Unauthorized", 401)
