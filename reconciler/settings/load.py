"""Loads settings: packaged defaults, overridden by the config file, then by HEADROOM_* variables, then by flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from reconciler.model.errors import Misused
from reconciler.settings.file import read_settings_file, snake
from reconciler.settings.settings import Settings, setting_names
from reconciler.settings.value import converted

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
_OF_SERVICE = r"_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
"""The suffixes of variables that kubelet sets for each Service in every container of the namespace."""
_S = TypeVar("_S")


def variable_of(name: str) -> str:
    """`placement.spot_share` → `HEADROOM_PLACEMENT_SPOT_SHARE`."""
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def load_settings(
    path: str | None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
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
    the file was read. What it has under `clusters` is left to `settings/clusters.py`.

    Raises `Misused` with the file or variable, the setting and what was expected. It also does so for a HEADROOM_* variable that is
    similar to a setting, since a typing error would go unnoticed.
    """
    common = {key: value for key, value in document.items() if key != "clusters"}
    settings = overlaid(Settings(), common, f"{path}: ")
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
    """Raises for a variable that is similar to a setting. settings: every variable of a setting."""
    known = {*settings, *(ENVIRONMENT_PREFIX + name for name in _NO_SETTINGS)}
    names = sorted(name.removeprefix(ENVIRONMENT_PREFIX) for name in known)
    for variable in sorted(variables):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in known or _of_service(variable, variables):
            continue
        # Compared without the common prefix, which would make any two similar.
        closest = _closest(variable.removeprefix(ENVIRONMENT_PREFIX), names, before=ENVIRONMENT_PREFIX)
        if closest:  # otherwise it has another purpose
            raise Misused(
                f"{variable}: there is no such setting{closest}",
                hint="correct it or unset it; config/headroom.yaml has every setting",
            )


def _of_service(variable: str, variables: Mapping[str, str]) -> bool:
    """Whether kubelet set it for a Service named headroom or headroom-…, which must not keep headroom from starting."""
    import re

    services = (name.removesuffix("_SERVICE_HOST") for name in variables if name.endswith("_SERVICE_HOST"))
    return any(re.fullmatch(re.escape(service) + _OF_SERVICE, variable) for service in services)


def overlaid(settings: Settings, document: Mapping[str, Any], where: str, prefix: str = "") -> Settings:
    """The settings overridden by a document. where: put before messages. prefix: the parent keys, as written. Raises `Misused`."""
    for key, value in document.items():
        written = f"{prefix}{key}"
        name = snake(written)
        if isinstance(value, dict) and any(known.startswith(f"{name}.") for known in setting_names()):
            settings = overlaid(settings, value, where, f"{written}.")
        elif value is not None:
            settings = _with(settings, name, value, where, written=written)
    return settings


def _camel(name: str) -> str:
    """A setting's name in a config file: `placement.spot_share` → `placement.spotShare`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _with(settings: _S, name: str, value: object, where: str, *, full: str = "", written: str = "") -> _S:
    """The settings with one value set. name: the setting's inside `settings`. full: its dotted name. written: its name in messages."""
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
    return replace(settings, **{head: converted(full, written, known[head], value, where)})  # type: ignore[type-var]


def _nearest(name: str) -> str:
    return _closest(_camel(name), [_camel(known) for known in setting_names()])


def _closest(name: str, known: Sequence[str], *, before: str = "") -> str:
    """`, did you mean …?` for a similar name, or "". before: the prefix of every name."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {before + close[0]!r}?" if close else ""
