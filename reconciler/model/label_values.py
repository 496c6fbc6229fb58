"""Names of our own making as values of labels and taints, which may not be long."""

from __future__ import annotations

import hashlib

LONGEST = 63
"""Characters, as the API server has it for both."""


def label_value(name: str, *, digits: int) -> str:
    """The name; one that is too long is cut and ends in so many digits of its digest, so that no two become one."""
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:digits]
    return f"{name[: LONGEST - digits - 1]}-{digest}"
