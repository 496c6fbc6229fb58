"""A slip of the hand is an error, or changes nothing. `HEADROOM_SLIPS=0` takes all slips, in place of some."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace

import pytest

from reconciler.manifests.repository.declared import read
from reconciler.model.declared import SLOTS, Declared
from reconciler.model.findings import Severity
from tests.properties.slips import SAMPLES, Slip, slips, some_slips

COUNT = int(os.environ.get("HEADROOM_SLIPS", "1500"))


def declared(text: str) -> Declared:
    return read({"slip.yaml": text.encode()})


def meaning(found: Declared) -> tuple[object, ...]:
    """What is declared, without where."""
    typed = [str(replace(value, position=None)) for slot in SLOTS[:-1] for value in getattr(found, slot)]
    return (*typed, [(item.ref, item.manifest) for item in found.manifests])


MEANINGS = [meaning(declared(json.dumps(sample))) for sample in SAMPLES]


def outcome(slip: Slip) -> str:
    """`error`, `same`, or `another`: a sound document that means something else."""
    found = declared(slip.text)
    if any(finding.severity is Severity.ERROR for finding in found.findings):
        return "error"
    return "same" if meaning(found) == MEANINGS[slip.sample] else "another"


@pytest.mark.parametrize("sample", range(len(SAMPLES)))
def test_the_samples_are_sound(sample: int) -> None:
    found = declared(json.dumps(SAMPLES[sample]))
    assert [finding for finding in found.findings if finding.severity is not Severity.INFO] == []


def test_a_slip_is_an_error_or_changes_nothing() -> None:
    judged = [slip for slip in some_slips(COUNT) if not slip.may_be_meant]
    outcomes = [outcome(slip) for slip in judged]
    assert [slip.name for slip, became in zip(judged, outcomes, strict=True) if became == "another"] == []
    assert Counter(outcomes)["error"] > len(judged) * 0.95


def test_every_required_key_is_missed() -> None:
    """Each of these is an error where it is dropped, whatever else is said of the document."""
    dropped = [slip for sample in range(len(SAMPLES)) for slip in slips(sample) if slip.what == "dropped"]
    missed = {str(slip.path[-1]) for slip in dropped if outcome(slip) == "error"}
    assert missed >= {
        *("apiVersion", "kind", "metadata", "name", "spec", "template", "containers", "items", "schedule"),
        *("start", "end", "defaultReplicas", "capacity", "requirements", "nodeClassRef", "podSets"),
    }
