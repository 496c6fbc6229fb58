"""Names that headroom makes, as values of labels and taints, whose length is limited."""

from __future__ import annotations

import hashlib

LONGEST = 63
"""The API server's limit for both, in characters."""


def label_value(name: str, *, digits: int) -> str:
    """The name. One that is too long is cut and ends in so many digits of its digest, so that different names stay different."""
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:digits]
    return f"{name[: LONGEST - digits - 1]}-{digest}"
