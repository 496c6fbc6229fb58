from dataclasses import replace

import pytest

from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.report.findings import findings_text, github_annotations, sarif_document


@pytest.fixture
def finding() -> Finding:
    return Finding(
        code="unknown-field",
        severity=Severity.WARNING,
        message="spec has no field 'replica', 100% sure",
        position=SourcePosition("clusters/a,b/web.yaml", 3, 5),
        ref=ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web"),
        path="spec.replica",
        hint="did you mean 'replicas'?",
    )


def test_text_says_where_what_and_what_to_write(finding: Finding) -> None:
    assert findings_text([finding], documents=1, files=1) == (
        "  clusters/a,b/web.yaml:3:5: warning: CapacityBuffer/shop/web: spec has no field 'replica', 100% sure [unknown-field]\n"
        "      did you mean 'replicas'?\n"
        "1 document in 1 file: 0 errors, 1 warning, 0 notes.\n"
    )


def test_annotations_are_escaped_for_the_runner(finding: Finding) -> None:
    assert github_annotations([finding]) == (
        "::warning file=clusters/a%2Cb/web.yaml,line=3,col=5,title=unknown-field"
        "::CapacityBuffer/shop/web: spec has no field 'replica', 100%25 sure%0Adid you mean 'replicas'?\n"
    )


def test_sarif_knows_a_finding_again_when_lines_have_moved(finding: Finding) -> None:
    def prints(*findings: Finding) -> list[str]:
        results = sarif_document(findings)["runs"][0]["results"]
        return [result["partialFingerprints"]["headroomFinding/v1"] for result in results]

    moved = replace(finding, position=SourcePosition("clusters/a,b/web.yaml", 30, 5))
    assert prints(moved) == prints(finding)
    assert len(set(prints(finding, moved))) == 2
    assert prints(replace(finding, path="spec.other")) != prints(finding)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        ("did you mean 'replicas'?", "; did you mean 'replicas'?"),
        ("headroom explain web prints why", "; headroom explain web prints why."),
        ("", "."),
    ],
)
def test_sarif_says_a_finding_and_its_hint_in_one_sentence(finding: Finding, hint: str, text: str) -> None:
    """It was `Did you mean 'replicas'?.`, and a command that began with a capital letter."""
    (result,) = sarif_document([replace(finding, hint=hint)])["runs"][0]["results"]
    assert result["message"]["text"] == f"{finding.full_message}{text}"


def test_sarif_links_to_the_page_of_each_code(finding: Finding) -> None:
    (rule,) = sarif_document([finding])["runs"][0]["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://headroom.dev/findings/unknown-field"


def test_a_finding_without_a_place_is_still_reported() -> None:
    finding = Finding("no-manifests", Severity.INFO, "nothing to read")
    assert github_annotations([finding]) == "::notice title=no-manifests::nothing to read\n"
    (place,) = sarif_document([finding])["runs"][0]["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"], "GitHub refuses the whole document otherwise"
