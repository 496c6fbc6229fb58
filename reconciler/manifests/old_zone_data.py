"""The warning that local times are computed from outdated time zone data."""

from __future__ import annotations

from datetime import datetime

from reconciler.manifests import codes
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.zone_data import zone_data


def old_zone_data(now: datetime, ref: ObjectRef, position: SourcePosition | None, path: str) -> tuple[Finding, ...]:
    """One finding or none. ref, position, path: the first object in local time and its field."""
    data = zone_data()
    if not data.is_old(now):
        return ()
    code = codes.OLD_ZONE_DATA
    message = f"local times are computed from time zone data {data}, which is out of date: they may be an hour off"
    hint = "upgrade the Python package tzdata, or the machine's time zone database; the newer of the two is used"
    return (Finding(code.name, code.severity, message, position, ref, path, hint),)
