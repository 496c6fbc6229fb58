"""A document whose structure is wrong in one place is judged everywhere else, so that all errors are told at once."""

from __future__ import annotations

import pytest

from tests.unit.manifests.reading import codes_of, findings

BUFFER = "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b, namespace: shop}\nspec: "
POOL = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n"


def test_one_wrong_value_hides_nothing_else() -> None:
    """Only the wrong type was told; the rest came after it had been mended."""
    text = BUFFER.replace("shop}", "shop, annotations: {headroom.dev/prioriti: '1'}}")
    text += "{replicas: three, provisioningStrategy: other, limits: {memory: -5Gi}, percentage: -4}\n"
    assert set(codes_of(text)) == {
        "wrong-type",
        "invalid-value",
        "misspelt-annotation",
        "unknown-strategy",
        "negative-limit",
        "buffer-without-reference",
    }


@pytest.mark.parametrize(
    "spec",
    [
        "{podTemplateRef: {name: t}, replicas: three}",
        "{scalableRef: 7, replicas: 1}",
        "{podTemplateRef: {}, replicas: 1}",
    ],
)
def test_a_wrong_value_is_no_missing_value(spec: str) -> None:
    """Neither `neither replicas nor limits` nor `neither podTemplateRef nor scalableRef`: they are there, and wrong."""
    (finding,) = findings(BUFFER + spec + "\n")
    assert finding.code in {"wrong-type", "missing-field"}


def test_where_a_rule_fails_on_what_is_missing_the_others_are_told() -> None:
    text = POOL + (
        "  template:\n"
        "    metadata: {labels: {kubernetes.io/hostname: a}}\n"
        "    spec:\n"
        "      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"
        "      taints: [{effect: NoSchedule}]\n"
        "      requirements: []\n"
    )
    assert set(codes_of(text)) == {"missing-field", "restricted-label"}


def test_more_budgets_than_allowed_are_not_compared_with_each_other() -> None:
    """Each of ten thousand with each: that would take minutes."""
    budgets = ", ".join(f"{{nodes: '{number}', schedule: '@daily', duration: 1h}}" for number in range(10_000))
    assert codes_of(POOL + f"  disruption: {{budgets: [{budgets}]}}\n") == ["invalid-value"]


def test_a_document_without_a_name_is_told_as_one() -> None:
    """It was `CapacityBuffer/default`, as if it were called that."""
    (finding,) = findings(BUFFER.replace("name: b, ", "") + "{podTemplateRef: {name: t}, replicas: 1}\n")
    assert (str(finding.ref), finding.message) == ("CapacityBuffer without a name", "metadata.name is missing")
