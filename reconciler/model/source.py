"""A tree of files at one revision: what the repository says, before any of it is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceTree:
    """files: path inside the repository (posix, no leading "./") → bytes, only manifests (`.yaml`, `.yml`, `.json`) and
    templates (`.j2`) under the configured path that `.sourceignore` leaves in.

    revision: `main@sha1:<40 hex>`, None for a plain folder; root: shown before paths in messages ("" for a remote).
    stalled: (reason, message) when the newest state could not be read or taken and this is the last good tree.
    rewound: the head does not descend from the one before (force-push): nothing may be pruned or released for a while.
    skipped: files that were left out for cause (too large, a link out of the repository): (path, why).
    """

    revision: str | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    root: str = ""
    stalled: tuple[str, str] | None = None
    rewound: bool = False
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def reasons_to_keep(self) -> tuple[str, ...]:
        """Why what this tree no longer declares must stay all the same."""
        reasons = []
        if self.stalled is not None:
            reasons.append(f"the repository is stalled: {self.stalled[1]}")
        if self.rewound:
            reasons.append("the branch was force-pushed a short while ago")
        reasons += [f"{path} was left out: {why}" for path, why in self.skipped]
        return tuple(reasons)
