"""No check compares every document of a repository with every other one: what is executed grows with their number.

The documents were read before, so that only what looks at all of them is counted, line by line: a rule about one document sees no other.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.repository.declared import KnownFiles, read
from tests.manifests import buffer, node_pool, pod_template, request
from tests.unit.manifests.test_codes import reported_in

ROOT = Path(__file__).parents[3]
Files = Mapping[str, bytes]
PLACE = "§"
"""Stands for the number of the document."""
BUFFER = buffer("web-§", "replicas: 1", of="podTemplateRef: {name: shape-§}")
SHAPE = pod_template("shape-§", "cpu: 100m")
REQUEST = request("train-§", 2, template="shape-§").replace(
    "shop}", 'shop, annotations: {headroom.dev/reserve: "true"}}'
)
PARAMETERS = '  parameters: {ValidUntilSeconds: "600"}\n'
CLASS = """\
---
{apiVersion: autoscaling.x-k8s.io/v1alpha1, kind: ProvisioningClass, metadata: {name: class-§}, allowedParameters: []}
"""
POOL = node_pool("pool-§", allow_windows="0 22 * * mon-fri for 8h")
CLAIMING = SHAPE.replace("{spec: {", "{spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}], ")
MISSPELT = BUFFER.replace("shape-§", "shaep-§") + SHAPE
DOCUMENTS = {
    "duplicate-object": BUFFER + BUFFER,
    "not-in-repository": BUFFER,
    "other-kinds": "apiVersion: v1\nkind: Service\nmetadata: {name: web-§}\n",
    "parameter-not-allowed": REQUEST.replace("atomic-scale-up.kubernetes.io", "class-§") + PARAMETERS + CLASS,
    "reserve-not-tolerated": REQUEST + SHAPE,
    "resource-claims": BUFFER + CLAIMING,
    "several-clusters": BUFFER,
    "windows": POOL,
    "wrong-type": BUFFER.replace("replicas: 1", "replicas: many"),
    "yaml-syntax": "a: b: c\n",
}
"""By the finding that each of them has, or what is special about them."""
OF_ONE = {"left-out", "not-read", "immutable-field"}
"""Findings of the same modules that are about a file, a document, or a document and its object in the cluster."""
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
COUNT = 40
MOST_FOR_A_PAIR = 0.3
"""Lines for each pair of documents. A comparison of each pair takes at least one."""


def repository(text: str, count: int, file: str = "§.yaml") -> Files:
    """Files of the text, each with another number."""
    numbers = [f"{number:05}" for number in range(count)]
    return {file.replace(PLACE, number): text.replace(PLACE, number).encode() for number in numbers}


def lines_of(run: Callable[[], object]) -> int:
    """How many lines of Python it executes. The collector of garbage is off: finalizers of other tests' objects would count."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def for_each_pair(measured: Callable[[int], int]) -> float:
    """What each pair of documents costs: the second difference, which a cost for each document, and a constant one, do not show in."""
    one, two, three = (measured(COUNT * times) for times in (1, 2, 3))
    return (three - 2 * two + one) / COUNT**2


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_check_compares_each_document_with_each(name: str) -> None:
    def lines(count: int) -> int:
        file = "clusters/c-§/a.yaml" if name == "several-clusters" else "§.yaml"
        files, known = repository(DOCUMENTS[name], count, file), KnownFiles()
        found = read(files, known=known)
        in_utc(found, NOW)
        assert name in {"windows", *(finding.code for finding in found.findings)}
        return lines_of(lambda: in_utc(read(files, known=known), NOW))

    assert for_each_pair(lines) < MOST_FOR_A_PAIR


def test_every_finding_about_several_documents_has_a_repository() -> None:
    folder = ROOT / "reconciler" / "manifests" / "repository"
    codes = reported_in("".join((folder / name).read_text(encoding="utf-8") for name in ("declared.py", "validate.py")))
    assert codes - OF_ONE <= DOCUMENTS.keys()


def test_a_comparison_of_each_with_each_would_be_noticed() -> None:
    def in_one_line(count: int) -> int:
        return lines_of(lambda: [one for one in range(count) if any(one == -other for other in range(count))])

    def once_for_each(count: int) -> int:
        return lines_of(lambda: [repr(one) for one in range(count)])

    assert for_each_pair(in_one_line) > MOST_FOR_A_PAIR
    assert for_each_pair(once_for_each) < MOST_FOR_A_PAIR


def test_a_similar_name_is_looked_for_among_few() -> None:
    hints = {item.hint for item in read(repository(MISSPELT, 500)).findings if "shaep-" in item.message}

    assert hints == {"ignore this if something else deploys it"}
