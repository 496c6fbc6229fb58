"""A tree of files at one revision: the repository's content before it is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

REMOVALS_TRAILER = "Headroom-Allow-Removals"
"""The trailer of a commit that lifts the share of what removals may take within an hour."""
_MOST_SKIPPED = 5
"""The most files that are named as reasons. Each is a finding as well."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Manifests (`.yaml`, `.yml`, `.json`) and templates (`.j2`) under the configured path, without ignored files."""

    revision: str | None
    """`main@sha1:` and 40 hexadecimal digits; None for a plain folder."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path inside the repository (POSIX, without a leading "./")."""
    root: str = ""
    """Put before paths in messages; "" for a remote repository."""
    stalled: tuple[str, str] | None = None
    """Reason and message when the newest state could not be read, and this is the last good tree."""
    rewound: bool = False
    """Whether the branch was force-pushed lately, so that nothing may be pruned or released because of it yet."""
    removals_allowed: bool = False
    """Whether a commit since the last one in force says `Headroom-Allow-Removals: true`."""
    committed: datetime | None = None
    """When the revision was committed; None for a plain folder."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Path and reason of each file left out, such as one that is too large or links out of the repository."""

    @property
    def reasons_to_keep(self) -> tuple[str, ...]:
        """Why objects that this tree no longer declares must stay all the same."""
        reasons = []
        if self.stalled is not None:
            reasons.append(f"the repository is stalled: {self.stalled[1]}")
        if self.rewound:
            reasons.append("the branch was force-pushed a short while ago")
        reasons += [f"{path} was left out: {why}" for path, why in self.skipped[:_MOST_SKIPPED]]
        more = len(self.skipped) - _MOST_SKIPPED
        if more > 0:
            reasons.append(f"{more:,} more {'file was' if more == 1 else 'files were'} left out")
        return tuple(reasons)
