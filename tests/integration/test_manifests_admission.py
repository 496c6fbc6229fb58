"""Headroom's own reading of manifests against a real API server: both say the same about every case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.manifests.crds import crds
from reconciler.manifests.repository.declared import read
from reconciler.manifests.repository.in_force import served_form
from reconciler.model.findings import Severity
from tests.controlplane import ControlPlane
from tests.controlplane.definitions import ALL, DEFINITION, defined
from tests.controlplane.documents import namespace
from tests.integration.real_cluster import refusal, said_against
from tests.unit.manifests.admission_cases import Case, cases

pytestmark = pytest.mark.e2e

TRANSLATED = {"reasons-lowercase", "nodes-integer-type"}
HERE = [case for case in cases("create") if case.kind != "CapacityBuffer" or case.api_version.endswith("/v1beta1")]
EXAMPLES = Path(__file__).parents[1] / "cases" / "own_kinds.yaml"


@pytest.fixture(scope="module")
def server(api_server: ControlPlane) -> Iterator[ControlPlane]:
    """With the namespace of the cases and headroom's own kinds."""
    api_server.api.apply(namespace("shop"))
    with defined(api_server.api, *ALL):
        yield api_server


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name)
def test_what_is_applied_is_admitted_and_what_is_refused_is_an_error(server: ControlPlane, case: Case) -> None:
    document = case.document()
    declared = read({"case.json": json.dumps(document).encode()})
    errors = [finding for finding in declared.findings if finding.severity is Severity.ERROR]
    if case.name not in TRANSLATED:
        if "disruption" in (case.spec or {}):
            # Karpenter's definition requires it wherever `disruption` is written; headroom writes it out.
            document["spec"]["disruption"].setdefault("consolidateAfter", "0s")
        assert bool(refusal(server.api, document)) == bool(errors), refusal(server.api, document)
    for manifest in declared.manifests:
        served = served_form(manifest, ())
        assert served is not None
        assert refusal(server.api, dict(served)) == ""


# Cluster Autoscaler's own definition lets parameters be added, as a rule on a field does not run where the field was absent.
SPEC_IS_IMMUTABLE = {"pr-update-add-first-parameters-v1", "pr-update-add-first-parameters-v1beta1"}


@pytest.mark.parametrize(
    "case",
    [case for operation in ("update", "status") for case in cases(operation) if case.kind == "ProvisioningRequest"],
    ids=lambda case: case.name,
)
def test_a_request_is_immutable_and_its_status_bounded(server: ControlPlane, case: Case) -> None:
    api = server.api
    path = api.path(case.api_version, case.kind, "shop")
    created = api.document("POST", path, body=case.document(case.old_spec))
    try:
        changed = {**created, **({"spec": case.spec} if case.operation == "update" else {"status": case.status})}
        below = f"{path}/case/status" if case.operation == "status" else f"{path}/case"
        said = said_against(api, "PUT", below, changed)
    finally:
        api.delete(case.api_version, case.kind, "case", namespace="shop")
    admitted = case.expected["valid"] and case.name not in SPEC_IS_IMMUTABLE
    assert (said == "") == admitted, said


def test_our_own_definitions_are_structural(server: ControlPlane) -> None:
    for crd in crds():
        stored = server.api.get(*DEFINITION, crd["metadata"]["name"])
        assert stored is not None
        conditions = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"
        for version, declared in zip(stored["spec"]["versions"], crd["spec"]["versions"], strict=True):
            assert version["schema"] == declared["schema"]


def test_our_own_kinds_are_judged_alike(server: ControlPlane) -> None:
    files = {"own_kinds.yaml": EXAMPLES.read_bytes()}
    declared = read(files)
    assert not [finding for finding in declared.findings if finding.severity is Severity.ERROR]
    assert {manifest.ref.kind for manifest in declared.manifests} == set(ALL)
    for manifest in declared.manifests:
        served = served_form(manifest, ())
        assert served is not None
        assert refusal(server.api, dict(served)) == ""
