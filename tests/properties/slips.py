"""Slips of the hand: every key of the documents in tests/cases/slips.yaml, misspelt, doubled, dropped, without its value or moved by one
level; and every name that a buffer refers to, misspelt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

SAMPLES: tuple[dict[str, Any], ...] = tuple(
    yaml.safe_load((Path(__file__).parents[1] / "cases" / "slips.yaml").read_text(encoding="utf-8"))
)
CHOSEN = frozenset({"labels", "matchLabels", "nodeSelector", "annotations"})
"""Maps whose keys people choose. A misspelt key in them is another key, unless it is one of headroom's annotations."""
OURS = "headroom.dev/"
REFERENCES = frozenset({"podTemplateRef", "scalableRef", "targetRef"})
Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Slip:
    """One slip. text: the file with it. what: `misspelt`, `null` (misspelt, and its value is null), `doubled`, `dropped`, `emptied` (its
    value is null), `up`, `down`, or `renamed` (of a name that a buffer refers to)."""

    sample: int
    what: str
    path: Steps
    text: str
    written: str = ""

    @property
    def name(self) -> str:
        steps = ".".join(map(str, self.path))
        return f"{SAMPLES[self.sample]['kind']} {self.sample}: {steps} {self.what} {self.written}".rstrip()

    @property
    def may_be_meant(self) -> bool:
        """Whether the outcome is a document that somebody may have wanted.

        That is so for another label, for an optional key that is absent, and for resources of a pod in place of those of its container: both
        have a field of that name since Kubernetes 1.32. Parameters of requests are no fields: the API server takes any.
        """
        key, target = str(self.path[-1]), self.written.rpartition(".")[2]
        is_chosen = len(self.path) > 1 and not key.startswith(OURS) and (self.path[-2] in CHOSEN or "/" in key)
        is_resource_of_pod = (self.what, key) == ("up", "resources") and target in {"spec", "podSpec"}
        is_parameter = self.what != "doubled" and self.path[-2:-1] == ("parameters",)
        is_timed = bool({"schedule", "budgets"} & {*self.path[:-1]}) and key != "nodes"
        is_absent = self.what == "dropped" or (self.what == "emptied" and not is_timed)
        return is_chosen or is_absent or is_resource_of_pod or is_parameter or self.what == "renamed"

    @property
    def is_about_a_reference(self) -> bool:
        """Whether a buffer that has this slip refers to nothing, or to something else."""
        return self.what in {"dropped", "emptied", "renamed"} and bool(REFERENCES & {*self.path[-2:]})


@cache
def slips(sample: int) -> tuple[Slip, ...]:
    """All slips of one sample."""
    return tuple(_slips(sample))


def _slips(sample: int) -> Iterator[Slip]:
    document = SAMPLES[sample]
    for path in _keys(document):
        key = str(path[-1])
        for written in sorted(_misspelt(key)):
            if written not in _at(document, path[:-1]):
                yield Slip(sample, "misspelt", path, json.dumps(_renamed(document, path, written)), written)
        unlike = _renamed(document, path, f"{key}{key[-1]}")
        _at(unlike, path[:-1])[f"{key}{key[-1]}"] = None
        yield Slip(sample, "null", path, json.dumps(unlike), f"{key}{key[-1]}")
        yield Slip(sample, "doubled", path, _text(document, path))
        yield Slip(sample, "dropped", path, json.dumps(_without(document, path)))
        yield Slip(sample, "emptied", path, json.dumps(_changed(document, path, None)))
        if REFERENCES & {*path[-2:-1]} and key == "name":
            name = f"{_at(document, path)}s"
            yield Slip(sample, "renamed", path, json.dumps(_changed(document, path, name)), name)
        for what, target in _neighbours(document, path):
            if key not in _at(document, target):
                moved = _without(document, path)
                _at(moved, target)[key] = _at(document, path)
                yield Slip(sample, what, path, json.dumps(moved), ".".join(map(str, target)) or "the top")


def some_slips(count: int) -> list[Slip]:
    """So many of all slips, in equal steps over each sample and each kind of slip; all of them for 0."""
    every = [slips(sample) for sample in range(len(SAMPLES))]
    if not count:
        return [slip for of_one in every for slip in of_one]
    shares = [of_one[:: max(1, len(of_one) * len(every) // count)] for of_one in every]
    return [slip for row in zip_longest(*shares) for slip in row if slip is not None]


def _misspelt(key: str) -> set[str]:
    """The key with one letter dropped, doubled, replaced, in the other case, or swapped with the next."""
    found = set()
    for index, letter in enumerate(key):
        before, after = key[:index], key[index + 1 :]
        found |= {before + after, before + letter + letter + after, before + letter.swapcase() + after}
        found.add(before + ("x" if letter != "x" else "y") + after)
        if after:
            found.add(before + after[0] + letter + after[1:])
    return found - {key, ""}


def _keys(node: Any, path: Steps = ()) -> Iterator[Steps]:
    if isinstance(node, Mapping):
        for key, inner in node.items():
            yield (*path, key)
            yield from _keys(inner, (*path, key))
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from _keys(inner, (*path, index))


def _neighbours(document: Any, path: Steps) -> Iterator[tuple[str, Steps]]:
    """The mappings one level up and one level down; a list is no level of its own."""
    above = path[:-1]
    while above:
        above = above[:-1]
        if isinstance(_at(document, above), dict):
            yield "up", above
            break
    for key, inner in _at(document, path[:-1]).items():
        below = (*path[:-1], key, 0) if isinstance(inner, list) else (*path[:-1], key)
        if key != path[-1] and inner and isinstance(_at(document, below), dict):
            yield "down", below


def _at(node: Any, path: Steps) -> Any:
    for step in path:
        node = node[step]
    return node


def _without(document: Any, path: Steps) -> Any:
    copy = json.loads(json.dumps(document))
    del _at(copy, path[:-1])[path[-1]]
    return copy


def _changed(document: Any, path: Steps, value: object) -> Any:
    copy = json.loads(json.dumps(document))
    _at(copy, path[:-1])[path[-1]] = value
    return copy


def _renamed(document: Any, path: Steps, written: str) -> Any:
    copy = json.loads(json.dumps(document))
    parent = _at(copy, path[:-1])
    entries = [(written if key == path[-1] else key, value) for key, value in parent.items()]
    parent.clear()
    parent.update(entries)
    return copy


def _text(node: Any, doubled: Steps) -> str:
    """As JSON, which is YAML too, with one key written twice. doubled: its path below this node; empty if it is elsewhere."""

    def below(step: str | int) -> Steps:
        return doubled[1:] if doubled[:1] == (step,) else ()

    if isinstance(node, dict):
        keys = [key for key in node for _ in range(2 if doubled == (key,) else 1)]
        return "{" + ", ".join(f"{json.dumps(key)}: {_text(node[key], below(key))}" for key in keys) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(_text(inner, below(index)) for index, inner in enumerate(node)) + "]"
    return json.dumps(node)
