"""Every setting, frozen: packaged defaults, then the config file, then HEADROOM_* variables, then flags.

The one list of settings is the classes below; `config/headroom.yaml` shows each with its default and a test holds the
two together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar, get_type_hints

from reconciler.forge_settings import ForgeSettings, ProposalSettings, SnapshotSettings, WebhookSettings
from reconciler.model.durations import parse_duration
from reconciler.model.errors import Invalid, Misused
from reconciler.settings_file import read_settings_file, snake

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
"""Variables that are no settings: tracebacks, secrets that no file should hold, and those of this project's own tests."""
_OF_SERVICE = r"_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
"""What kubelet appends to a Service's name in the variables that it sets in every container of the namespace."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """The clone and how it is kept up to date. Paths: token_file, ssh_key, known_hosts, allowed_signers.

    interval: between polls, with 5% jitter. state: folder for the shallow clone ("" is a temporary one).
    rewind_hold: how long nothing is pruned or released after a force-push.
    plain_http: a token may be sent without encryption, to hosts other than this machine.
    """

    interval: timedelta = timedelta(minutes=1)
    timeout: timedelta = timedelta(minutes=1)
    state: str = ""
    username: str = ""
    token_file: str = ""
    ssh_key: str = ""
    known_hosts: str = ""
    allowed_signers: str = ""
    plain_http: bool = False
    rewind_hold: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class PassSettings:
    """When passes are made.

    interval: between passes when nothing changed. quiet: how long there must be no change before a pass starts.
    quiet_at_most: a pass starts this long after the first change, even while changes go on.
    """

    interval: timedelta = timedelta(minutes=5)
    quiet: timedelta = timedelta(seconds=2)
    quiet_at_most: timedelta = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class InventorySettings:
    """The ConfigMap that lists what headroom applied; one for each daemon on a cluster."""

    namespace: str = "headroom-system"
    name: str = "headroom"


@dataclass(frozen=True, slots=True)
class CapSettings:
    """Limits of what one pass may do; 0 means no limit. prune_share: of the inventory within an hour, at least one object.

    nodes_per_request: new nodes for one ProvisioningRequest, over all passes of an attempt. All of them count as one for
    new_nodes_per_pass: they are made in one pass, or wait for one in which nothing else is made.
    """

    new_nodes_per_pass: int = 100
    price_per_hour: float = 0.0
    nodes_per_pool: int = 0
    nodes_per_request: int = 1000
    prune_share: float = 0.25


@dataclass(frozen=True, slots=True)
class BufferSettings:
    """fulfilment: who keeps buffers that do not say: placeholder, native or balloon. balloon_image: of balloon pods."""

    fulfilment: str = "placeholder"
    balloon_image: str = "registry.k8s.io/pause:3.10"


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """ProvisioningRequests.

    booked_for: how long capacity is set aside for the pods of a request. valid_for: how long an atomic request is tried, from its creation,
    where it has no ValidUntilSeconds. first_retry: wait after its first attempt that failed; doubled after each.
    kept_for: how long a request from Git that has ended stays in the cluster, and is remembered once it has left Git.
    """

    booked_for: timedelta = timedelta(minutes=10)
    valid_for: timedelta = timedelta(minutes=10)
    first_retry: timedelta = timedelta(minutes=1)
    kept_for: timedelta = timedelta(hours=168)


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """How nodes are chosen.

    mode: fast, or optimal for cheaper new nodes by linear programming. optimal_within: after that long, the best answer
    so far is used. chunks_per_node: most chunks of one demand on a node, so that losing the node loses no more (0: no limit).
    instance_types: how many types a placeholder offers, so that its launch survives a stock-out of one.
    spot_share: most of a demand's chunks on spot nodes of one instance type in one zone (1: no bound).
    not_ready_grace: how long chunks wait for a held node that is not ready, before other room is made for them.
    check: verify every placement by independent code before it is used.
    """

    mode: str = "fast"
    optimal_within: timedelta = timedelta(minutes=1)
    chunks_per_node: int = 0
    instance_types: int = 20
    spot_share: float = 1.0
    not_ready_grace: timedelta = timedelta(minutes=1)
    check: bool = False


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """How fast the in-process cluster is."""

    launch_delay: timedelta = timedelta(seconds=2)
    register_delay: timedelta = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """form: console or json; level: debug, info, warning or error."""

    form: str = "console"
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings.

    repository: path or URL. revision: branch, tag or commit ("" is the working tree, or a URL's default branch).
    path: folder inside it. cluster, catalog: as the flags of those names. dialect: karpenter or ca.
    templates: folder inside the repository with its own templates. drift: correct or report what was changed in the cluster.
    listen: address of health, metrics and status. suspend: plan but never write.
    allow_empty: obey an empty repository, and prune what it no longer declares.
    """

    repository: str = ""
    revision: str = ""
    path: str = ""
    cluster: str = ""
    catalog: str = ""
    dialect: str = "karpenter"
    templates: str = "templates"
    listen: str = "127.0.0.1:8080"
    leader_election: bool = False
    suspend: bool = False
    allow_empty: bool = False
    drift: str = "correct"
    git: GitSettings = field(default_factory=GitSettings)
    forge: ForgeSettings = field(default_factory=ForgeSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    proposal: ProposalSettings = field(default_factory=ProposalSettings)
    snapshot: SnapshotSettings = field(default_factory=SnapshotSettings)
    passes: PassSettings = field(default_factory=PassSettings)
    inventory: InventorySettings = field(default_factory=InventorySettings)
    caps: CapSettings = field(default_factory=CapSettings)
    buffers: BufferSettings = field(default_factory=BufferSettings)
    requests: RequestSettings = field(default_factory=RequestSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    logs: LogSettings = field(default_factory=LogSettings)


_CHOICES = {
    "dialect": ("karpenter", "ca"),
    "drift": ("correct", "report"),
    "forge.kind": ("", "github", "gitlab", "gitea"),
    "buffers.fulfilment": ("placeholder", "native", "balloon"),
    "placement.mode": ("fast", "optimal"),
    "logs.form": ("console", "json"),
    "logs.level": ("debug", "info", "warning", "error"),
}
_PARTS = ("placement.spot_share",)
"""Settings that are a share of something, and must be above 0."""
_MOST_COUNTED = 1_000_000
"""Most nodes, chunks or instance types: more than any cluster has, and far below the limits of placement's integers."""
_RANGES: dict[str, tuple[float, float]] = {
    "caps.price_per_hour": (0, 1_000_000_000),
    "caps.prune_share": (0, 1),
    "placement.instance_types": (1, 600),  # as many as Karpenter sends for a launch (MaxInstanceTypes)
}
"""Bounds of numbers that may not be every count from 0."""
_S = TypeVar("_S")


def setting_names() -> tuple[str, ...]:
    """Every setting by its dotted name, in order."""
    return tuple(name for name, _ in _leaves(Settings))


def variable_of(name: str) -> str:
    """`placement.spot_share` → `HEADROOM_PLACEMENT_SPOT_SHARE`."""
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def _leaves(owner: type[Any], prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    hints = get_type_hints(owner)
    for item in fields(owner):
        kind = hints[item.name]
        if is_dataclass(kind) and isinstance(kind, type):
            yield from _leaves(kind, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, item


def load_settings(
    path: str | None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Defaults, then the file at `path`, then the environment, then flags (dotted name → value, None is not given).

    Raises `Misused` naming the file or variable, the setting and what was expected. It also does so for a HEADROOM_* variable that is
    nearly a setting, since a typing error would go unnoticed.
    """
    settings = Settings()
    if path is not None:
        settings = _overlay(settings, read_settings_file(path), f"{path}: ")
    variables = os.environ if environment is None else environment
    names = {variable_of(name): name for name in setting_names()}
    _check_variables(variables, names)
    for variable, name in names.items():
        if variable in variables:
            settings = _with(settings, name, variables[variable], f"{variable}: ")
    for name, value in (flags or {}).items():
        if value is not None:
            settings = _with(settings, name, value, f"--{name.rsplit('.', maxsplit=1)[-1].replace('_', '-')}: ")
    return settings


def _check_variables(variables: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """settings: every variable that is one."""
    known = {*settings, *(ENVIRONMENT_PREFIX + name for name in _NO_SETTINGS)}
    names = sorted(name.removeprefix(ENVIRONMENT_PREFIX) for name in known)
    for variable in sorted(variables):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in known or _of_service(variable, variables):
            continue
        # Without what all of them begin with, or any two would be alike.
        closest = _closest(variable.removeprefix(ENVIRONMENT_PREFIX), names, before=ENVIRONMENT_PREFIX)
        if closest:  # else it is somebody else's
            raise Misused(
                f"{variable}: there is no such setting{closest}",
                hint="correct it or unset it; config/headroom.yaml has every setting",
            )


def _of_service(variable: str, variables: Mapping[str, str]) -> bool:
    """A Service named headroom, or headroom-anything, must not keep headroom from starting beside it."""
    import re  # noqa: PLC0415 - only where a variable is none of ours

    services = (name.removesuffix("_SERVICE_HOST") for name in variables if name.endswith("_SERVICE_HOST"))
    return any(re.fullmatch(re.escape(service) + _OF_SERVICE, variable) for service in services)


def _overlay(settings: Settings, document: Mapping[str, Any], where: str, prefix: str = "") -> Settings:
    """prefix: the keys above, as they are written."""
    for key, value in document.items():
        written = f"{prefix}{key}"
        name = snake(written)
        if isinstance(value, dict) and any(known.startswith(f"{name}.") for known in setting_names()):
            settings = _overlay(settings, value, where, f"{written}.")
        elif value is not None:
            settings = _with(settings, name, value, where, written=written)
    return settings


def _camel(name: str) -> str:
    """As it stands in a config file: `placement.spot_share` → `placement.spotShare`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _with(settings: _S, name: str, value: object, where: str, *, full: str = "", written: str = "") -> _S:
    """name: of the setting inside of `settings`; full: inside of all of them; written: as messages name it."""
    full = full or name
    written = written or _camel(full)
    head, _, rest = name.partition(".")
    known = {item.name: item for item in fields(settings)}  # type: ignore[arg-type]  # always a dataclass here
    if head in known and not rest and is_dataclass(getattr(settings, head)):
        example = next(name for name in setting_names() if name.startswith(f"{full}."))
        raise Misused(
            f"{where}{written} is {value!r}, expected a mapping of settings", hint=f"such as {_camel(example)}"
        )
    if head not in known or (bool(rest) != is_dataclass(getattr(settings, head))):
        raise Misused(
            f"{where}there is no setting {written!r}{_nearest(full)}", hint="config/headroom.yaml has every setting"
        )
    if rest:
        inner = _with(getattr(settings, head), rest, value, where, full=full, written=written)
        return replace(settings, **{head: inner})  # type: ignore[type-var]
    return replace(settings, **{head: _converted(full, written, known[head], value, where)})  # type: ignore[type-var]


def _nearest(name: str) -> str:
    return _closest(_camel(name), [_camel(known) for known in setting_names()])


def _closest(name: str, known: Sequence[str], *, before: str = "") -> str:
    """before: what every name begins with."""
    import difflib  # noqa: PLC0415 - only for a message

    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {before + close[0]!r}?" if close else ""


def _converted(name: str, written: str, item: Field[Any], value: object, where: str) -> object:
    default = item.default if item.default is not MISSING else None
    expected = {
        timedelta: 'a duration such as "1m30s"',
        bool: "true or false",
        int: "a whole number",
        float: "a number",
    }
    kind = type(default)
    try:
        result = _parsed(kind, value)
    except (ValueError, TypeError, Invalid) as error:
        raise Misused(
            f"{where}{written} is {value!r}, expected {expected.get(kind, 'a text')}",
            hint=error.hint if isinstance(error, Invalid) else "",
        ) from error
    choices = _CHOICES.get(name)
    if choices and result not in choices:
        raise Misused(f"{where}{written} is {value!r}, expected one of {', '.join(choices)}")
    if name == "placement.optimal_within" and result == timedelta(0):
        raise Misused(
            f"{where}{written} is {value!r}, expected a duration of more than 0",
            hint="with no time nothing cheaper is ever found: write placement.mode: fast for that",
        )
    if name in _PARTS and not 0 < float(str(result)) <= 1:
        raise Misused(
            f"{where}{written} is {value!r}, expected more than 0, at most 1",
            hint="it is a part of the whole: write 0.25 for a quarter; 1 is no bound",
        )
    if isinstance(result, int | float) and not isinstance(result, bool):
        _check_range(name, result, f"{where}{written} is {value!r}")
    return result


def _check_range(name: str, number: float, told: str) -> None:
    least, most = _RANGES.get(name, (0, _MOST_COUNTED))
    if not number >= least:  # and not a number (.nan) is in no range
        raise Misused(f"{told}, expected {least:,} or more")
    if number > most:
        raise Misused(f"{told}, expected at most {most:,}")


def _parsed(kind: type[Any], value: object) -> object:
    if kind is timedelta:
        if isinstance(value, timedelta):
            return value
        return parse_duration(f"{value}s" if isinstance(value, int) else str(value))
    if kind is bool:
        words = {"true": True, "false": False, "1": True, "0": False}
        if isinstance(value, bool):
            return value
        if str(value).lower() not in words:
            raise ValueError(value)
        return words[str(value).lower()]
    if kind in {int, float}:
        if isinstance(value, bool):
            raise ValueError(value)
        return kind(str(value))
    return value if isinstance(value, str) else str(value)
