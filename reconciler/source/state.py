"""What a polled repository remembers over a restart: the last good commit and the last force-push."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

_FILE = "good.json"


@dataclass(frozen=True, slots=True)
class Good:
    """The commit in force. time: its commit time, in seconds since 1970. rewound_at: when a commit last came into force that did
    not descend from its predecessor."""

    name: str
    commit: str
    time: int
    rewound_at: datetime | None = None

    @property
    def revision(self) -> str:
        return f"{self.name}@sha1:{self.commit}"


def is_rewound(rewound_at: datetime | None, now: datetime, hold: timedelta) -> bool:
    """Whether a force-push is so recent that nothing may be pruned or released because of it."""
    return rewound_at is not None and now < rewound_at + hold


def load_good(folder: Path) -> Good | None:
    """The saved commit; None if none was saved, or it cannot be read. The next poll then starts from nothing."""
    try:
        document = json.loads((folder / _FILE).read_bytes())
        rewound_at = document["rewoundAt"]
        return Good(
            name=str(document["name"]),
            commit=str(document["commit"]),
            time=int(document["time"]),
            rewound_at=None if rewound_at is None else datetime.fromisoformat(rewound_at),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_good(folder: Path, good: Good) -> None:
    """Replaces the file atomically, so that a killed process never leaves half of one."""
    document = {
        "name": good.name,
        "commit": good.commit,
        "time": good.time,
        "rewoundAt": None if good.rewound_at is None else good.rewound_at.isoformat(),
    }
    fresh = folder / f"{_FILE}.new"
    fresh.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    fresh.replace(folder / _FILE)
