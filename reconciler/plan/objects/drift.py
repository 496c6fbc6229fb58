"""What was changed in the cluster since headroom applied it, and what happens then.

A live object has drifted if it carries the hash of the manifest that would be applied, and yet differs from it. Then it was changed in the
cluster, not in Git. The policy is a setting (`drift`) and, for one object, the annotation `headroom.dev/drift`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from reconciler.model.changes import FieldChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.findings import Finding
from reconciler.model.marks import DRIFT_ANNOTATION, OWN_MANAGER
from reconciler.model.view import LiveObject
from reconciler.plan.codes import DRIFTED

_OF_PEOPLE = "kubectl"
"""Managers whose names begin so are somebody at a keyboard: kubectl, kubectl-edit, kubectl-patch, kubectl-client-side-apply."""
_REPLICAS = "spec.replicas"
"""Belongs to whatever scales the object, and is never taken back."""


class Drift(StrEnum):
    CORRECT = "correct"
    """Applied again. What a person changed with kubectl is taken back; a field that a controller took is a conflict."""
    REPORT = "report"
    """Reported as a finding. Nothing is written until the manifest itself changes."""


def drift_of(annotations: Mapping[str, str], default: Drift) -> Drift:
    """The policy for one object; an unknown word is the default (the manifest has an error then)."""
    written = annotations.get(DRIFT_ANNOTATION)
    return Drift(written) if written in set(Drift) else default


def is_taken_back(changes: Sequence[FieldChange], live: LiveObject) -> bool:
    """Whether all of it was changed by people, so that applying it may take the fields over."""
    return all(
        change.path != _REPLICAS and all(owner.startswith(_OF_PEOPLE) for owner in _owners(change.path, live))
        for change in changes
    )


def drift_finding(item: DeclaredManifest, changes: Sequence[FieldChange], live: LiveObject) -> Finding:
    fields = "; ".join(f"{change.path} is {_shown(change.before)}, not {_shown(change.after)}" for change in changes)
    owners = sorted({owner for change in changes for owner in _owners(change.path, live)})
    by = f" by {' and '.join(owners)}" if owners else ""
    return DRIFTED.finding(
        f"was changed in the cluster{by} since it was applied: {fields}",
        item.position,
        item.ref,
        changes[0].path,
        f"change it in Git, or set {DRIFT_ANNOTATION}: correct to have it put back",
    )


def _owners(path: str, live: LiveObject) -> list[str]:
    """Other managers that own the field or one beside it, since ownership is known two levels deep only."""
    field = ".".join(path.partition("[")[0].split(".")[:2])
    return [
        manager
        for manager, owned in live.managers.items()
        if field in owned and manager.partition("-")[0] != OWN_MANAGER
    ]


def _shown(value: object) -> str:
    return "absent" if value is None else str(value)
