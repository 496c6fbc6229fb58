"""What the API server and Karpenter admit, store and refuse, case by case, as `headroom validate` sees it."""

from __future__ import annotations

import json

import pytest

from reconciler.manifests.documents.load import schema_of, with_defaults
from reconciler.manifests.repository.declared import read
from reconciler.manifests.repository.validate import refused_changes
from reconciler.model import codes
from reconciler.model.findings import Finding, Severity
from tests.unit.manifests.admission_cases import Case, cases

TRANSLATED = {"reasons-lowercase", "nodes-integer-type"}
"""Refused by the API server, but written in the design "Disruption Controls By Reason": read, rendered right, and told."""
SCHEMAS = {"CapacityBuffer": "capacity_buffer", "ProvisioningRequest": "provisioning_request", "NodePool": "node_pool"}


def findings_of(case: Case) -> tuple[Finding, ...]:
    return read({"case.json": json.dumps(case.document()).encode()}).findings


def errors(findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def label(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", [case for case in cases("create") if case.expected["valid"]], ids=label)
def test_what_the_api_server_admits_is_no_error(case: Case) -> None:
    assert errors(findings_of(case)) == []


@pytest.mark.parametrize("case", [case for case in cases("create") if not case.expected["valid"]], ids=label)
def test_what_the_api_server_refuses_is_told_at_its_field(case: Case) -> None:
    findings = findings_of(case)
    assert any(finding.path.startswith(case.expected["path"]) for finding in findings), findings
    if case.name in TRANSLATED:
        assert [finding.code for finding in findings] == [codes.OLD_SPELLING.name]
    else:
        assert errors(findings)


@pytest.mark.parametrize(
    "case", [case for case in cases("create") if case.expected.get("runtimeValid") is False], ids=label
)
def test_a_pool_that_never_becomes_ready_is_told(case: Case) -> None:
    assert any(finding.severity is not Severity.INFO for finding in findings_of(case))


@pytest.mark.parametrize("case", [case for case in cases("create") if "stored" in case.expected], ids=label)
def test_defaults_are_those_of_the_api_server(case: Case) -> None:
    stored = with_defaults(schema_of(SCHEMAS[case.kind]), case.document())
    expected = case.expected["stored"]
    for field, value in expected.get("spec", expected).items():
        found = stored["spec"][field]
        assert (found.items() >= value.items()) if isinstance(value, dict) else (found == value)


@pytest.mark.parametrize("case", cases("update"), ids=label)
def test_changes_that_the_api_server_refuses_are_found_beforehand(case: Case) -> None:
    refused = refused_changes(case.document(case.old_spec), case.document())
    assert (not refused) == case.expected["valid"]
    if refused:
        assert any(change.path.startswith(case.expected["path"]) for change in refused)
