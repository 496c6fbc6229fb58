"""Each JSON output is what its shipped schema says."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest

from reconciler.cli.schema import output_schema, schema_names
from reconciler.model.changes import BudgetOutcome, NodeClaimAction, Plan
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Stalled
from reconciler.model.remembered import WaitingDeletions
from reconciler.model.timelines import BudgetPieces
from reconciler.report.budgets import budget_spans_json
from reconciler.report.difference.difference import difference
from reconciler.report.difference.document import difference_document
from reconciler.report.explanation import explanation, explanation_document
from reconciler.report.findings import findings_document
from reconciler.report.plan.document import plan_document
from reconciler.report.status.clusters import clusters_document
from reconciler.report.status.document import PassReport
from reconciler.report.status.text import daemon_status_text
from tests.builders import buffer_ref
from tests.fakes.status import shown
from tests.plans import NOW, full_plan

SICK = PassReport(
    "embedded",
    NOW,
    NOW,
    passes=3,
    plan=full_plan(),
    tree=SourceTree("main@sha1:0", stalled=("GitOperationFailed", "remote down")),
    failure=Stalled("the branch is gone", reason="GitOperationFailed"),
    timings={"git": 0.1},
)
NEW = PassReport("embedded", NOW, NOW, passes=0)

DOCUMENTS: dict[str, Callable[[], Any]] = {
    "plan.v1": lambda: plan_document(full_plan()),
    "diff.v1": lambda: difference_document(difference(Plan(None, NOW), full_plan())),
    "findings.v1": lambda: findings_document(full_plan().findings, NOW),
    "status.v1": lambda: shown(SICK),
    "clusters.v1": lambda: clusters_document({"production": shown(SICK), "staging": shown(NEW)}),
    "budgets.v1": lambda: json.loads(
        "".join(
            budget_spans_json(
                [BudgetPieces([0, 3_600_000_000], [BudgetOutcome("general", "Empty", None, None, 0, 1, 12, "why")])],
                now=NOW,
                findings=full_plan().findings,
            )
        )
    ),
    "explain.v1": lambda: explanation_document(explanation(full_plan(), "CapacityBuffer/shop/web")),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_output_fits_its_schema(name: str) -> None:
    jsonschema_rs.Draft202012Validator(output_schema(name)).validate(DOCUMENTS[name]())


def test_a_missing_field_would_be_noticed() -> None:
    document = plan_document(full_plan())
    del document["cost"]
    assert not jsonschema_rs.Draft202012Validator(output_schema("plan.v1")).is_valid(document)


def test_a_difference_may_have_whatever_its_plans_have() -> None:
    plan = full_plan()
    freed = replace(
        plan.node_claims, untaint=(NodeClaimAction("general-x", "node-x", "general", "its request is over"),)
    )
    waiting = WaitingDeletions((buffer_ref(),), 1, 11, next_at=NOW)
    document = difference_document(difference(plan, replace(plan, node_claims=freed, waiting=waiting)))
    assert document["head"].keys() >= {"waitingDeletions"}
    jsonschema_rs.Draft202012Validator(output_schema("diff.v1")).validate(document)


def test_every_schema_is_a_schema() -> None:
    assert set(DOCUMENTS) <= set(schema_names())
    for name in schema_names():
        jsonschema_rs.meta.validate(output_schema(name))


def test_the_daemons_status_reads_well() -> None:
    text = daemon_status_text(DOCUMENTS["status.v1"]())
    assert "headroom" in text.splitlines()[1]
    assert "not healthy" in text
    assert "remote down (GitOperationFailed)" in text
    assert "0/4 ready, 4 missing: NodePool general is at its cpu limit of 64" in text
