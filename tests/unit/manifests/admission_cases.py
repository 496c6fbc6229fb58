"""The admission cases of tests/cases as documents. Used by the tests of what is admitted, stored and immutable."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from tests.case_files import cases_in

_POOL_SPEC: dict[str, Any] = {
    "template": {
        "spec": {
            "nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "Exists"}],
        }
    }
}


@dataclass(frozen=True)
class Case:
    """One case for one version of its kind. rule: the name that the case gives to what is violated."""

    name: str
    operation: str
    api_version: str
    kind: str
    spec: Any
    old_spec: Any
    expected: dict[str, Any]
    status: Any = None

    def document(self, spec: Any = None) -> dict[str, Any]:
        given = self.spec if spec is None else spec
        metadata = {"name": "case"} if self.kind == "NodePool" else {"name": "case", "namespace": "shop"}
        body = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}
        return body if given is None else {**body, "spec": given}


def cases(operation: str) -> list[Case]:
    """The cases of one operation: create, update or status."""
    return [case for case in (*_of_autoscaling(), *_of_node_pools()) if case.operation == operation]


def _of_autoscaling() -> list[Case]:
    found: dict[tuple[str, str], Case] = {}
    for entry in cases_in("crd_validation.yaml"):
        given = entry["input"]
        for target in given["targets"]:
            version = target.split("/")[1]
            found[entry["name"], version] = Case(
                name=f"{entry['name']}-{version}",
                operation=given["op"],
                api_version=f"autoscaling.x-k8s.io/{version}",
                kind=given["kind"],
                spec=given.get("spec"),
                old_spec=given.get("oldSpec"),
                expected=entry["expect"],
                status=given.get("status"),
            )
    return list(found.values())


def _of_node_pools() -> list[Case]:
    return [
        Case(
            name=entry["name"],
            operation=entry["input"]["op"],
            api_version="karpenter.sh/v1",
            kind="NodePool",
            spec=_over(_POOL_SPEC, entry["input"]["spec"]),
            old_spec=_over(_POOL_SPEC, entry["input"]["oldSpec"]) if "oldSpec" in entry["input"] else None,
            expected=entry["expect"],
        )
        for entry in cases_in("budget_validation.yaml")
    ]


def _over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = copy.deepcopy(below)
    for key, value in above.items():
        merged[key] = _over(merged[key], value) if key in merged else value
    return merged
