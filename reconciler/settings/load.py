"""Settings from the file, the environment and the command line: which source wins, and what a value may be. And the clusters that one process
serves: each has the common settings, with its own over them. A file without `clusters` serves one."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, Field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from reconciler.files import read_named_file
from reconciler.forge import FORGES
from reconciler.manifests.documents.document import Document
from reconciler.manifests.documents.load import load_file
from reconciler.model import codes
from reconciler.model.errors import Invalid, Misused
from reconciler.model.findings import Finding
from reconciler.model.quantity import parse_duration
from reconciler.model.refs import abridged
from reconciler.settings.settings import ClusterSettings, Settings, setting_fields

CHOICES = {
    "forge.kind": ("", *FORGES),
    "placement.mode": ("fast", "optimal"),
    "logs.form": ("console", "json"),
    "logs.level": ("debug", "info", "warning", "error"),
}
"""What settings may be that are no enumeration."""
_MOST_COUNTED = 1_000_000
"""The most nodes, chunks or instance types: more than any cluster has, and far below the limits of placement's integers."""
_ADDRESSES = frozenset({"dashboard", "forge.api", "forge.pages"})
_RANGES: dict[str, tuple[float, float]] = {
    "caps.price_per_hour": (0, 1_000_000_000),
    "caps.prune_share": (0, 1),
    "placement.instance_types": (1, 600),  # as many as Karpenter sends for a launch (MaxInstanceTypes)
}
"""Bounds of numbers with another range than 0 and above."""


def converted(name: str, written: str, item: Field[Any], value: object, where: str) -> object:
    """The value of a setting. name: dotted, as in `setting_fields`. written: its name in messages. where: put before that.

    Raises `Misused`.
    """
    default = item.default if item.default is not MISSING else None
    expected = {
        timedelta: 'a duration such as "1m30s"',
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text, in quotes if YAML takes it for something else",
    }
    kind = type(default)
    if issubclass(kind, StrEnum):
        expected[kind] = f"one of {', '.join(kind)}"
    try:
        result = _parsed(kind, value)
    except (KeyError, ValueError, TypeError, Invalid) as error:
        raise Misused(
            f"{where}{written} is {value!r}, expected {expected[kind]}",
            hint=error.hint if isinstance(error, Invalid) else "",
        ) from error
    if needed := _needed(name, result):
        raise Misused(f"{where}{written} is {value!r}, expected {needed}")
    return result


def _needed(name: str, value: Any) -> str:
    """What the setting may be instead of a value of its type; "" for a good one."""
    choices = CHOICES.get(name, ())
    least, most = _RANGES.get(name, (0, _MOST_COUNTED))
    number = value if type(value) in {int, float} else least
    wrong = (
        (choices and value not in choices, f"one of {', '.join(filter(None, choices))}"),
        (name == "placement.optimal_within" and not value, "a duration of more than 0"),
        (name in _ADDRESSES and value and "://" not in value, "an address with https://"),
        (not number >= least, f"{least:,} or more"),  # and not a number (.nan) is in no range
        (number > most, f"at most {most:,}"),
    )
    return next((words for holds, words in wrong if holds), "")


def _parsed(kind: type[Any], value: object) -> object:
    if kind is timedelta:
        return parse_duration(f"{value}s" if isinstance(value, int) else str(value))
    if kind is bool:
        return {"true": True, "false": False, "1": True, "0": False}[str(value).lower()]
    if kind is str and not isinstance(value, str):
        raise TypeError(value)
    return kind(str(value))


def read_settings_file(path: str) -> Mapping[str, Any]:
    """The file's settings as written. Raises `Misused`, also for a setting that is set twice."""
    try:
        items = list(load_file(path, read_named_file(path)))
    except OSError as error:
        raise Misused(
            f"{path}: cannot be read ({error.strerror})", hint="name the config file with --config"
        ) from error
    for item in items:
        if isinstance(item, Finding) and item.code != codes.NOT_AN_OBJECT.name:
            raise Misused(f"{item.position}: {item.message}", hint=item.hint)
    documents = [item for item in items if isinstance(item, Document)]
    if len(documents) < len(items) or len(documents) > 1:
        raise Misused(
            f"{path}: a config file is a mapping of settings", hint="see config/headroom.yaml for all of them"
        )
    return documents[0].value if documents else {}


def snake(key: str) -> str:
    """A setting's name in the code: `optimalWithin` → `optimal_within`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


ENVIRONMENT_PREFIX = "HEADROOM_"
_NO_SETTINGS = (
    "DEBUG",
    "GIT_TOKEN",
    "FORGE_TOKEN",
    "WEBHOOK_SECRET",
    "GOLDEN",
    "EXAMPLES",
    "SCENARIOS",
    "CONTROLPLANE_ASSETS",
)
"""Variables that are not settings: tracebacks, secrets that should not be in a file, and those of this project's tests."""
_BY_FLAG = {"REPO": "REPOSITORY"}
"""The flag --repo sets a setting of another name."""
_OF_SERVICE = r"_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
"""The suffixes of variables that kubelet sets for each Service in every container of the namespace."""


def variable_of(name: str) -> str:
    """`caps.prune_share` → `HEADROOM_CAPS_PRUNE_SHARE`."""
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def load_settings(
    path: str | None, *, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Settings:
    """Defaults, then the file at `path`, then the environment, then flags. Raises as `settings_of`."""
    document = {} if path is None else read_settings_file(path)
    return settings_of(document, path or "", environment=environment, flags=flags)


def settings_of(
    document: Mapping[str, Any],
    path: str,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of a file, overridden by the environment, then by flags (values by dotted name, None if not given). path: where
    the file was read. What it has under `clusters` is left to `load_served`.

    Raises `Misused` with the file or variable, the setting and what was expected. It also does so for a HEADROOM_* variable that is
    similar to a setting, since a typing error would go unnoticed.
    """
    common = {key: value for key, value in document.items() if key != "clusters"}
    settings = overlaid(Settings(), common, f"{path}: ")
    variables = os.environ if environment is None else environment
    names = {variable_of(name): name for name in setting_fields()}
    _check_variables(variables, names)
    for variable, name in names.items():
        if variable in variables:
            settings = _with(settings, name, variables[variable], f"{variable}: ")
    for name, value in (flags or {}).items():
        if value is not None:
            settings = _with(settings, name, value, f"--{name.rsplit('.', maxsplit=1)[-1].replace('_', '-')}: ")
    return settings


def _check_variables(variables: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Raises for a variable that is similar to a setting. settings: every variable of a setting."""
    allowed = {*settings, *(ENVIRONMENT_PREFIX + name for name in _NO_SETTINGS)}
    names = sorted(name.removeprefix(ENVIRONMENT_PREFIX) for name in allowed)
    for variable in sorted(variables):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in allowed or _of_service(variable, variables):
            continue
        # Compared without the common prefix, which would make any two similar.
        word = variable.removeprefix(ENVIRONMENT_PREFIX)
        closest = _closest(_BY_FLAG.get(word, word), names, before=ENVIRONMENT_PREFIX)
        if closest:  # otherwise it has another purpose
            raise Misused(
                f"{variable}: there is no such setting{closest}",
                hint="correct it or unset it; config/headroom.yaml has every setting",
            )


def _of_service(variable: str, variables: Mapping[str, str]) -> bool:
    """Whether kubelet set it for a Service named headroom or headroom-…, which must not keep headroom from starting."""
    services = (name.removesuffix("_SERVICE_HOST") for name in variables if name.endswith("_SERVICE_HOST"))
    return any(re.fullmatch(re.escape(service) + _OF_SERVICE, variable) for service in services)


def overlaid(settings: Settings, document: Mapping[str, Any], where: str, prefix: str = "") -> Settings:
    """The settings overridden by a document. where: put before messages. prefix: the parent keys, as written. Raises `Misused`."""
    for key, value in document.items():
        written = f"{prefix}{key}"
        name = snake(written)
        if isinstance(value, dict) and any(known.startswith(f"{name}.") for known in setting_fields()):
            settings = overlaid(settings, value, where, f"{written}.")
        elif value is not None:
            settings = _with(settings, name, value, where, written=written)
    return settings


def _camel(name: str) -> str:
    """A setting's name in a config file: `caps.prune_share` → `caps.pruneShare`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _with(settings: Settings, name: str, value: object, where: str, *, written: str = "") -> Settings:
    """The settings with one value set. name: dotted. written: the same in messages."""
    written = written or _camel(name)
    item = setting_fields().get(name)
    inside = next((other for other in setting_fields() if other.startswith(f"{name}.")), "")
    if inside:
        raise Misused(
            f"{where}{written} is {value!r}, expected a mapping of settings", hint=f"such as {_camel(inside)}"
        )
    if item is None:
        raise Misused(
            f"{where}there is no setting {written!r}{_nearest(name)}", hint="config/headroom.yaml has every setting"
        )
    changed: Any = converted(name, written, item, value, where)
    group, _, last = name.rpartition(".")
    if group:
        changed = replace(getattr(settings, group), **{last: changed})
    return replace(settings, **{group or last: changed})


def _nearest(name: str) -> str:
    known = [_camel(each) for each in setting_fields()]
    group, dot, last = _camel(name).rpartition(".")
    siblings = [each.removeprefix(f"{group}.") for each in known if each.startswith(f"{group}.")]
    # Compared without the common group, which would make any two similar.
    return _closest(last, siblings, before=f"{group}.") if dot and siblings else _closest(_camel(name), known)


def _closest(name: str, known: Sequence[str], *, before: str = "") -> str:
    """`, did you mean …?` for a similar name, or "". before: the prefix of every name."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {before + close[0]!r}?" if close else ""


OF_PROCESS = ("listen", "allowed_hosts", "webhooks", "logs")
"""Settings that a process has once, whatever it serves."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MOST_NAMED = 5


def load_served(
    path: str | None, *, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> tuple[ClusterSettings, ...]:
    """Every cluster to serve, in the file's order. The flag `cluster` chooses one by its name. Raises `Misused`."""
    document = {} if path is None else read_settings_file(path)
    rows = document.get("clusters")
    if rows is None:
        return (ClusterSettings("", settings_of(document, path or "", environment=environment, flags=flags)),)
    where = f"{path}: clusters"
    if not isinstance(rows, list) or not rows:
        raise Misused(
            f"{where} is {rows!r}, expected a list", hint="write - name: production, and its path and cluster"
        )
    flags = dict(flags or {})
    chosen = flags.pop("cluster", None)
    common = settings_of(document, path or "", environment=environment, flags=flags)
    served = tuple(_served(common, row, f"{where}[{number}]") for number, row in enumerate(rows))
    _refuse_twins(served, where)
    if chosen is None:
        return served
    named = tuple(each for each in served if each.name == chosen)
    if not named:
        raise Misused(f"--cluster {chosen} is none of the clusters in {path}", hint=f"it has {_names(served)}")
    return named


def load_one(path: str | None, *, flags: Mapping[str, object]) -> Settings:
    """The settings of the one cluster that a command is about. Raises `Misused` if there are several to choose from."""
    served = load_served(path, flags=flags)
    if len(served) > 1:
        raise Misused(f"{path} serves several clusters", hint=f"name one with --cluster: {_names(served)}")
    return served[0].settings


def _served(common: Settings, row: object, where: str) -> ClusterSettings:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        raise Misused(f"{where} has no name", hint="each cluster has a name, such as name: production")
    name = row["name"]
    if _NAME.fullmatch(name) is None:
        raise Misused(
            f"{where}.name is {name!r}, expected lower-case letters, digits and dashes",
            hint="it stands in addresses and in the label `cluster` of metrics",
        )
    for key in row:
        if snake(str(key)) in OF_PROCESS:
            raise Misused(
                f"{where} ({name}): {key} is a setting of the whole process", hint="write it outside of clusters"
            )
    its_settings = {key: value for key, value in row.items() if key != "name"}
    return ClusterSettings(name, overlaid(common, its_settings, f"{where} ({name}): "))


_OF_ONE = {
    "name": "give each a name of its own",
    "cluster and inventory": "set cluster or kubeconfig, or another inventory.name for a second set of manifests on one cluster",
    "snapshot.branch": "a branch has the snapshot of one cluster: headroom/snapshot-production",
    "proposal.branch": "a branch has the proposal for one cluster: headroom/production",
}
"""What no two entries may share, since both would write it, and what to do."""


def _marks(served: ClusterSettings) -> dict[str, Hashable]:
    """What must be the entry's own, by the names in `_OF_ONE`."""
    settings = served.settings
    marks: dict[str, Hashable] = {"name": served.name}
    if not settings.cluster.startswith("embedded"):
        marks["cluster and inventory"] = (settings.cluster, settings.kubeconfig, settings.inventory)
    if settings.snapshot.publish:
        marks["snapshot.branch"] = (settings.repository, settings.snapshot.branch)
    if settings.proposal.branch:
        marks["proposal.branch"] = (settings.repository, settings.proposal.branch)
    return marks


def _refuse_twins(served: Sequence[ClusterSettings], where: str) -> None:
    """Raises `Misused` where two entries have the same mark."""
    seen: dict[tuple[str, Hashable], str] = {}
    for each in served:
        for mark in _marks(each).items():
            if mark in seen:
                raise Misused(f"{where}: {seen[mark]} and {each.name} have the same {mark[0]}", hint=_OF_ONE[mark[0]])
            seen[mark] = each.name


def _names(served: Sequence[ClusterSettings]) -> str:
    return abridged([each.name for each in served], _MOST_NAMED)
