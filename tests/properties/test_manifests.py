"""Whatever a repository holds, reading it never fails: it gives documents and findings, the same ones every time."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.manifests.documents.tree import resolve_plain
from reconciler.manifests.kinds import KINDS
from reconciler.manifests.repository.declared import read, read_live, with_last_good
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject

WORDS = sorted(
    {
        "spec", "metadata", "name", "template", "containers", "resources", "requests", "limits", "cpu", "replicas",
        "capacity", "nodeClass", "pods", "podSpec", "percent", "targetRef", "kind", "disruption", "budgets", "nodes",
        "reasons", "reason", "schedule", "duration", "requirements", "key", "operator", "values", "minValues",
        "nodeClassRef", "taints", "behaviors", "start", "end", "hours", "weekdays", "timezone", "defaultReplicas",
        "podSets", "count", "podTemplateRef", "scalableRef", "parameters", "provisioningClassName", "annotations",
        "replicaBasedBufferSpec", "headroom.dev/timezone", "labels", "status", "conditions", "type", "selector",
        "consolidateAfter", "expireAfter", "affinity", "tolerations", "apiversion", "totalCpu", "totalMem",
    },
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["In", "Gt", "10%", "Never", "1h", "500m", "@daily", "Mon-Fri", "*/5", "Empty", "expired", "v1", "web"]
    ),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), inner, max_size=5),
    ),
    max_leaves=25,
)
BODIES = st.dictionaries(st.sampled_from(WORDS), TREES, max_size=5)
IDENTITIES = st.sampled_from([(kind.api_version(version), kind.name) for kind in KINDS for version in kind.versions])


def documents() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda identity, body, metadata: {
            **body,
            **({"metadata": {"name": "x"}} if metadata else {}),
            "apiVersion": identity[0],
            "kind": identity[1],
        },
        IDENTITIES,
        BODIES,
        st.booleans(),
    )


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    files = {"a.yaml": content, "b.json": content}
    assert read(files) == read(files)
    assert read(files).documents >= 0


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="abkn:-[]{}&*<#|>!%\"'\\ \n\t\r?,0.~{}", max_size=60))
def test_any_yaml_like_text(text: str) -> None:
    declared = read({"a.yaml": text.encode()})
    for finding in declared.findings:
        assert finding.position is not None
        assert 1 <= finding.position.line <= text.count("\n") + text.count("\r") + 2


@settings(max_examples=150, deadline=None)
@given(documents())
def test_any_document_of_our_kinds(document: dict[str, Any]) -> None:
    declared = read({"a.json": json.dumps(document).encode()})
    assert declared.broken_files <= {"a.json"}
    broken = bool(declared.broken)
    assert broken == any(finding.severity == "error" for finding in declared.findings)
    assert not (broken and declared.manifests)
    assert with_last_good(declared, declared).manifests == declared.manifests


@settings(max_examples=80, deadline=None)
@given(documents())
def test_any_live_object(document: dict[str, Any]) -> None:
    group = document["apiVersion"].rpartition("/")[0]
    read_live([LiveObject(ObjectRef(group, document["kind"], "shop", "x"), document)])


@settings(max_examples=120, deadline=None)
@given(st.text(alphabet="0123456789+-._eExXobBOynYNaf", max_size=8))
def test_any_scalar_is_json(text: str) -> None:
    value = resolve_plain(text)
    assert isinstance(value, str | int | float | bool | None)
