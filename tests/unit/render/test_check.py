"""What is found wrong with a repository's templates before they are merged."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from reconciler.files import packaged_texts
from reconciler.model.findings import Finding
from reconciler.render.check import checked_templates, findings_of_files
from reconciler.render.templates import RenderProcess, TemplateSource

PACKAGED = packaged_texts("templates", suffix=".j2")
CLAIM = PACKAGED["nodeclaim.yaml.j2"]


def found(files: dict[str, str], folder: str = "templates") -> list[Finding]:
    process = RenderProcess()
    source = TemplateSource(PACKAGED, folder, process=process)
    try:
        return list(checked_templates(source.of({path: text.encode() for path, text in files.items()})).findings)
    finally:
        process.close()


def told(files: dict[str, str], folder: str = "templates") -> list[str]:
    return [f"{finding.position} {finding.code} {finding.message}" for finding in found(files, folder)]


def test_the_packaged_templates_as_a_repository_s_own_have_nothing_wrong() -> None:
    names = ("nodeclaim.yaml.j2", "nodepool.yaml.j2")
    assert told({f"templates/{name}": PACKAGED[name] for name in names}) == []


def test_a_mistake_that_only_some_objects_show() -> None:
    text = CLAIM.replace("{% if taints %}", "{% if taints %}\n{{ taints[0].valeu }}")
    line = 1 + text[: text.index("valeu")].count("\n")
    (finding,) = told({"templates/nodeclaim.yaml.j2": text})
    assert finding.startswith(f"templates/nodeclaim.yaml.j2:{line}:1 template-failed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CLAIM.replace("kind: NodeClaim", "kind: Secret"), "which headroom does not apply"),
        (CLAIM.replace("name: {{ name | json }}", "name: mine"), 'wrote "mine" as metadata.name'),
        (CLAIM.replace("  requirements:", "  requirements: 7\n  others:"), "not valid"),
        (f"{CLAIM}\n---\na: 1\n", "wrote 2 documents"),
        ("", "wrote nothing"),
        ("{{ 10 ** 10 ** 3 }}", "wrote '1000000000000000000000000000000', which is not an object"),
        ("a: [", "not valid"),
    ],
)
def test_what_a_template_writes_is_checked(text: str, message: str) -> None:
    (finding,) = told({"templates/nodeclaim.yaml.j2": text})
    assert finding.startswith("templates/nodeclaim.yaml.j2:1:1 template-failed")
    assert message in finding


@patch("reconciler.render.templates.SECONDS", 0.3)
def test_a_template_that_hangs_is_one_finding_and_the_others_are_checked() -> None:
    files = {
        "templates/nodeclaim.yaml.j2": "\n{% if 3 ** (10 ** 9) %}{% endif %}",
        "templates/nodepool.yaml.j2": "\n\n{{ nothing }}",
    }
    claim, pool = told(files)
    assert claim.startswith("templates/nodeclaim.yaml.j2:1:1 template-failed")
    assert "it takes more than 0.3 seconds of processor time" in claim
    assert pool.startswith("templates/nodepool.yaml.j2:3:1 template-failed")


def test_templates_that_nothing_uses() -> None:
    files = {
        "templates/nodeclaim.yaml.j2": CLAIM + "{% include 'parts/labels.j2' %}",
        "templates/parts/labels.j2": "",
        "templates/nodeclaims.yaml.j2": CLAIM,
        "clusters/a/templates/nodeclaim.yaml.j2": CLAIM,
    }
    assert told(files) == [
        (
            "clusters/a/templates/nodeclaim.yaml.j2:1:1 template-not-used no document is rendered from "
            "clusters/a/templates/nodeclaim.yaml.j2, which is outside of the folder 'templates'"
        ),
        "templates/nodeclaims.yaml.j2:1:1 template-not-used no document is rendered from template nodeclaims.yaml.j2, and no other template names it",
    ]


def test_every_templates_folder_of_a_repository_of_several_clusters() -> None:
    files = {
        "templates/nodeclaim.yaml.j2": CLAIM.encode(),
        "clusters/a/templates/nodepool.yaml.j2": b"{{ nothing }}",
        "clusters/b/nodeclaim.yaml.j2": b"",
    }
    findings = findings_of_files(files, PACKAGED, ())
    assert [f"{finding.position} {finding.code}" for finding in findings] == [
        "clusters/a/templates/nodepool.yaml.j2:1:1 template-failed",
        "clusters/b/nodeclaim.yaml.j2:1:1 template-not-used",
    ]
