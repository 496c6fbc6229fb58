"""A slip of the hand is an error, or changes nothing. `HEADROOM_SLIPS=0` takes all slips, in place of some."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace

import pytest

from reconciler.manifests.declared import read
from reconciler.manifests.slots import SLOTS
from reconciler.model.declared import Declared
from reconciler.model.findings import Severity
from tests.properties.slips import SAMPLES, Slip, slips, some_slips

COUNT = int(os.environ.get("HEADROOM_SLIPS", "1500"))
KUBERNETES = frozenset({("up", "resources", "spec"), ("up", "resources", "podSpec")})
"""Pods have resources of their own since Kubernetes 1.32, in a field of the same name as those of containers."""


def declared(text: str) -> Declared:
    return read({"slip.yaml": text.encode()})


def meaning(found: Declared) -> tuple[object, ...]:
    """What is declared, without where."""
    typed = [tuple(str(replace(value, position=None)) for value in getattr(found, slot)) for slot in SLOTS]
    return (*typed, [(item.ref, item.manifest) for item in found.manifests])


MEANINGS = [meaning(declared(json.dumps(sample))) for sample in SAMPLES]


def outcome(slip: Slip) -> str:
    """`error`, `same`, or `another`: a sound document that means something else. `unknown-parameter` is a warning about the parameters of a
    request, which are no fields: the API server takes any, and classes ignore those that they do not know.
    """
    found = declared(slip.text)
    if any(finding.severity is Severity.ERROR for finding in found.findings):
        return "error"
    if any(finding.code == "unknown-parameter" for finding in found.findings):
        return "unknown-parameter"
    return "same" if meaning(found) == MEANINGS[slip.sample] else "another"


@pytest.mark.parametrize("sample", range(len(SAMPLES)))
def test_the_samples_are_sound(sample: int) -> None:
    found = declared(json.dumps(SAMPLES[sample]))
    assert [finding for finding in found.findings if finding.severity is not Severity.INFO] == []


def test_a_slip_is_an_error_or_changes_nothing() -> None:
    """Left out are keys that people choose, such as labels: with another letter that is another label.

    A key that is dropped is no slip that could be told: without an optional field the document means what it would always have meant.
    """
    counts: Counter[tuple[str, str]] = Counter()
    slipped_through = []
    for slip in some_slips(COUNT):
        if slip.is_of_chosen:
            counts[slip.what, "of a chosen name"] += 1
            continue
        became = outcome(slip)
        counts[slip.what, became] += 1
        may_be_another = (
            slip.what == "dropped" or (slip.what, slip.path[-1], slip.written.rpartition(".")[2]) in KUBERNETES
        )
        may_be_another = may_be_another or (slip.path[-2:-1] == ("parameters",) and became == "unknown-parameter")
        if became not in {"error", "same"} and not may_be_another:
            slipped_through.append(f"{slip.name} is {became}")
    assert slipped_through == [], dict(counts)


def test_every_required_key_is_missed() -> None:
    """Each of these is an error where it is dropped, whatever else is said of the document."""
    dropped = [slip for sample in range(len(SAMPLES)) for slip in slips(sample) if slip.what == "dropped"]
    missed = {str(slip.path[-1]) for slip in dropped if outcome(slip) == "error"}
    assert missed >= {
        *("apiVersion", "kind", "metadata", "name", "spec", "template", "containers", "items", "schedule"),
        *("start", "end", "defaultReplicas", "capacity", "requirements", "nodeClassRef", "podSets"),
    }
