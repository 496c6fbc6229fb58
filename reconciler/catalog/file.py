"""A catalog in a file, in the format of `instance_types.json` of Karpenter's KWOK provider."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.files import read_named_file
from reconciler.manifests.instance_types import AS_OF, date_of_prices, instance_types_from
from reconciler.model.errors import Invalid, Misused
from reconciler.model.nodes import InstanceType
from reconciler.model.view import ClusterView


class FileCatalog:
    """Reads the file at first use, and again whenever it has changed. Raises `Invalid` for an unusable file."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)  # as it was written: a Path would make http:/x of http://x
        self._stamp: tuple[int, int, int] | None = None
        self._instance_types: tuple[InstanceType, ...] = ()
        self._as_of = ""

    @property
    def source(self) -> str:
        when = f"prices as of {self._as_of}" if self._as_of else f"undated: it has no {AS_OF}"
        return f"file {self._path}, {when}"

    def instance_types(self, view: ClusterView) -> tuple[InstanceType, ...]:  # noqa: ARG002 - the port's signature
        try:
            status = Path(self._path).stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                self._instance_types = self._read()
                self._stamp = stamp
        except OSError as error:
            raise Misused(
                f"catalog {self._path} cannot be read ({error.strerror})",
                hint="name a JSON file, karpenter-metrics:URL or observed",
            ) from error
        return self._instance_types

    def _read(self) -> tuple[InstanceType, ...]:
        try:
            document = json.loads(read_named_file(self._path))
        except UnicodeDecodeError as error:
            raise Invalid(f"catalog {self._path} is not text in UTF-8") from error
        except json.JSONDecodeError as error:
            raise Invalid(f"{self._path}:{error.lineno}:{error.colno}: is not JSON ({error.msg})") from error
        except RecursionError as error:
            raise Invalid(f"catalog {self._path} is nested too deeply") from error
        except ValueError as error:
            raise Invalid(f"catalog {self._path} has a number that is too large") from error
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise Invalid(f"catalog {self._path} has half of a surrogate pair, which no text can hold") from error
        try:
            types = instance_types_from(document)
            self._as_of = date_of_prices(document)
        except Invalid as error:
            raise Invalid(f"{self._path}: {error.message}", hint=error.hint, causes=error.causes) from error
        return types
