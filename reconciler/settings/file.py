"""Reads the settings file as YAML, before its keys are matched with settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.model.errors import Misused
from reconciler.named_files import read_named_file


def read_settings_file(path: str) -> Mapping[str, Any]:
    """The file's settings as written. Raises `Misused`, also for a setting that is set twice."""
    import yaml

    try:
        text = read_named_file(path).decode()
        _refuse_repeated_keys(path, yaml.compose(text, Loader=yaml.SafeLoader))
        document = yaml.safe_load(text)
    except OSError as error:
        raise Misused(
            f"{path}: cannot be read ({error.strerror})", hint="name the config file with --config"
        ) from error
    except UnicodeDecodeError as error:
        raise Misused(f"{path}: is not text in UTF-8") from error
    except RecursionError as error:
        raise Misused(f"{path}: is nested too deeply") from error
    except yaml.YAMLError as error:
        raise Misused(
            _words(path, error), hint="check indentation (spaces, never tabs) and unclosed brackets"
        ) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise Misused(
            f"{path}: a config file is a mapping of settings", hint="see config/headroom.yaml for all of them"
        )
    return document


def _words(path: str, error: Any) -> str:
    """The message for an error of PyYAML, whose own has another name for the text and a drawing of the position."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return f"{path}: is not YAML: {' '.join(str(error).split())}"
    return f"{path}:{mark.line + 1}:{mark.column + 1}: is not YAML: {error.problem}"


def _refuse_repeated_keys(path: str, document: Any) -> None:
    """Raises for a key that is set twice. YAML parsers silently take the last value. document: PyYAML's node."""
    seen: set[str] = set()
    for name, key in _keys(document):
        if name in seen:
            raise Misused(f"{path}:{key.start_mark.line + 1}: {key.value} is set twice", hint="remove one of the two")
        seen.add(name)


def _keys(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each key's node with its setting's name, since a name may be spelled in several ways."""
    if node is None or node.id != "mapping":
        return
    for key, value in node.value:
        name = f"{prefix}{snake(str(key.value))}"
        yield name, key
        if not prefix:  # settings are two levels deep
            yield from _keys(value, f"{name}.")


def snake(key: str) -> str:
    """A setting's name in the code: `optimalWithin` → `optimal_within`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
