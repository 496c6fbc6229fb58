"""What looks like a secret is shown by no report, and still told to change."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.changes import Action, FieldChange, ObjectChange, Plan
from reconciler.report.difference.difference import Details, difference
from reconciler.report.difference.document import difference_document
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import masked_changes, to_json
from reconciler.report.plan.rows import page_text
from reconciler.wiring.pages import rendered_page
from tests.builders import buffer_ref
from tests.plans import NOW

CONTAINER = "template.spec.containers[0]"


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (f"{CONTAINER}.env[0].value", "hunter1", "hunter2"),
        (f"{CONTAINER}.env", [{"name": "A", "value": "hunter1"}], [{"name": "A", "value": "hunter2"}]),
        (f"{CONTAINER}.env[0]", {"name": "A", "value": "hunter1"}, {"name": "A", "value": "hunter2"}),
        (CONTAINER, {"env": [{"name": "A", "value": "hunter1"}]}, {"env": [{"name": "A", "value": "hunter2"}]}),
        ("metadata.annotations.example.com/db-password", "hunter1", "hunter2"),
        ("metadata.annotations.note", "https://me:hunter1@host/x", "https://me:hunter2@host/x"),
        ("template", None, {"spec": {"containers": [{"env": [{"name": "A", "value": "hunter2"}]}]}}),
    ],
)
def test_secrets_reach_no_report(path: str, before: Any, after: Any) -> None:
    change = ObjectChange(buffer_ref(), Action.UPDATE, (FieldChange(path, before, after),), {})
    found = difference(Plan(None, NOW), Plan(None, NOW, objects=(change,)), Details(templates=(change,)))
    page = difference_page(found, cluster="production")
    for text in (
        page_text(difference_page(found, cluster="production")),
        to_json(difference_document(found)),
        rendered_page("report.md.j2", page),
        rendered_page("report.html.j2", page),
    ):
        assert "hunter" not in text
        assert "***" in text or "\\*\\*\\*" in text


def test_a_secret_that_changes_is_told_to_change() -> None:
    (change,) = masked_changes([FieldChange("spec.env[0].value", "a", "b")])
    assert (change.before, change.after) == ("*** (before)", "*** (after)")


def test_other_values_stay() -> None:
    change = FieldChange("spec.replicas", 1, 2)
    assert masked_changes([change]) == (change,)
