"""A snapshot of a cluster, read from its files.

Nothing in a snapshot says whether a kind that headroom does not know by name has a scale subresource. An object among the workloads is
assumed to have one, which is safe since only buffers look at it.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath

import msgspec

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.decode import list_items
from reconciler.cluster.resources import (
    BY_KIND,
    CONFIG_MAPS,
    QUEUED_WORKLOADS,
    RESOURCES,
    WORKLOADS,
    Resource,
    group_of,
    plural_of,
    scaled_kind,
)
from reconciler.cluster.view import ViewStore
from reconciler.manifests.instance_types import instance_types_from
from reconciler.model import codes
from reconciler.model.changes import Outcome, Write, WriteResult
from reconciler.model.errors import Invalid, Misused
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster, Event

_TYPE = msgspec.json.Decoder(wire.TypeWire)


WORKLOADS_FILE = "workloads.json"
QUEUED_FILE = "kueueworkloads.json"
"""Kueue's Workloads, which have the plural that is taken for all kinds with a scale."""
CATALOG_FILE = "instance_types.json"
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz")
_LIST = ".json"
_LISTS = (_LIST, ".yaml", ".yml")
"""Suffixes of files that may be meant as lists of objects. Notes and pictures next to them are fine."""
_MAKE_ONE = "make one with `headroom snapshot -o PATH`"
_MOST_BYTES = 4 * 2**30  # unpacked; an archive that claims more is not a cluster


@dataclass(frozen=True, slots=True)
class Snapshot:
    """objects: the items of each kind, undecoded. catalog: its instance types, () if there are none. findings: about files that are
    not read."""

    objects: Mapping[Resource, list[msgspec.Raw]] = field(default_factory=dict)
    catalog: tuple[InstanceType, ...] = ()
    findings: tuple[Finding, ...] = ()


def file_of(resource: Resource) -> str:
    """`pods.json`, for example. Kinds with a scale share `workloads.json`, even those that headroom does not know by name."""
    if resource == QUEUED_WORKLOADS:
        return QUEUED_FILE
    return WORKLOADS_FILE if resource in WORKLOADS else f"{resource.plural}.json"


_BY_FILE = {file_of(resource): resource for resource in (*RESOURCES, CONFIG_MAPS) if resource not in WORKLOADS} | {
    f"{resource.plural}.json": resource for resource in WORKLOADS
}
"""Kubernetes' own workloads may have a file each too, as `kubectl get deployments -A -o json` prints them."""
_NOT_JUDGED = frozenset(
    f"{kind}.json"
    for kind in ("csinodes", "resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")
)
"""An older headroom captured these. That they are not judged is said of the pods that they are about."""


def read_snapshot(path: str | Path) -> Snapshot:
    """The objects and the catalog of a folder or archive. Raises `Invalid` naming the file."""
    return snapshot_of(str(path), *_read_files(Path(path)))


def snapshot_of(path: str, files: Mapping[str, bytes], others: Iterable[str] = ()) -> Snapshot:
    """A snapshot of files that were read already. path: for messages. others: the names of files that are not lists."""
    others = list(others)
    objects: dict[Resource, list[msgspec.Raw]] = {}
    catalog: tuple[InstanceType, ...] = ()
    scaled: dict[tuple[str, str], Resource] = {}
    for name, data in sorted(files.items()):
        try:
            if name == CATALOG_FILE:
                catalog = instance_types_from(msgspec.json.decode(data))
            elif name == WORKLOADS_FILE:
                for item in list_items(data).items or ():
                    objects.setdefault(_workload_kind(item, scaled), []).append(item)
            elif name not in _BY_FILE:
                others.append(name)
            else:
                objects.setdefault(_BY_FILE[name], []).extend(list_items(data).items or ())
        except msgspec.MsgspecError as error:
            raise Invalid(f"{path}: {name} is not JSON ({error})") from error
        except Invalid as error:
            raise Invalid(f"{path}: {name} {error.message}", hint=error.hint) from error
    return Snapshot(objects, catalog, _unread(path, others))


def _workload_kind(item: msgspec.Raw, scaled: dict[tuple[str, str], Resource]) -> Resource:
    """The kind of an item of `workloads.json`. scaled: kinds that headroom does not know by name, one value for all of their versions.
    Raises `Invalid` for one that cannot have a scale."""
    written = _TYPE.decode(item)
    group, kind = group_of(written.api_version), written.kind
    known = BY_KIND.get((group, kind))
    if known is None and kind and "." in group:
        version = written.api_version.rpartition("/")[2]
        return scaled.setdefault((group, kind), scaled_kind(group, kind, plural_of(kind), (version,)))
    if known is None or known not in WORKLOADS:
        hint = "each needs apiVersion and kind, those of a kind with a scale"
        raise Invalid("has an item of another kind", hint=hint)
    return known


def _unread(path: str | Path, names: Iterable[str]) -> tuple[Finding, ...]:
    """One finding about all files that look like lists of objects but have other names than those that are read."""
    unread = sorted(
        {name for name in names if name.endswith(_LISTS) and not name.startswith(".") and name not in _NOT_JUDGED}
    )
    if not unread:
        return ()
    verb = "is" if len(unread) == 1 else "are"
    kinds = ", ".join(workload.kind for workload in WORKLOADS)
    hint = (
        f"the files that are read are {', '.join(sorted((*_BY_FILE, WORKLOADS_FILE, CATALOG_FILE)))}; {WORKLOADS_FILE} is for {kinds} and any kind with a"
        " scale"
    )
    message = f"{path}: {', '.join(unread)} {verb} not read: no file of a snapshot is called so"
    return (codes.UNREAD_FILE.finding(message, hint=hint),)


def write_snapshot(path: str | Path, files: Mapping[str, bytes]) -> None:
    """Writes a folder, or an archive if the path ends in .tar.gz. Equal files give equal bytes. What an earlier snapshot had in the folder
    is replaced. Raises `Invalid`."""
    target = Path(path)
    try:
        if target.name.endswith(ARCHIVE_SUFFIXES):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_archive(files))
            return
        target.mkdir(parents=True, exist_ok=True)
        for name, data in sorted(files.items()):
            (target / name).write_bytes(data)
        for name in {*_BY_FILE, WORKLOADS_FILE, CATALOG_FILE} - files.keys():
            (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise Invalid(f"{path} cannot be written ({error.strerror})", hint="name another place with -o") from error


def _read_files(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """The contents of files that may be lists, by name, and the names of other files."""
    try:
        if path.is_dir():
            there = {item.name for item in path.iterdir() if item.is_file()}
            lists = set(filter(_may_be_list, there))
            if not lists and any(path.iterdir()):
                hint = "name the folder or archive that `headroom snapshot -o PATH` wrote"
                raise Misused(f"{path}: no file of a snapshot is in this folder", hint=hint)
            return {name: (path / name).read_bytes() for name in lists}, list(there - lists)
        if path.is_file():
            return _unpacked(path)
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror or error})") from error
    except (tarfile.TarError, EOFError, zlib.error, LZMAError) as error:
        # tarfile lists every compression that it tried, one a line
        why = str(error).splitlines()[0].rstrip(":")
        raise Invalid(f"{path}: is no .tar.gz archive ({why})", hint=_MAKE_ONE) from error
    raise Misused(f"{path}: there is no such snapshot", hint=_MAKE_ONE)


def _may_be_list(name: str) -> bool:
    return name.endswith(_LIST) and not name.startswith(".")


def _unpacked(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """The same from an archive, read without unpacking, so that paths in it do no harm. A leading folder is dropped."""
    files: dict[str, bytes] = {}
    others: list[str] = []
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            if not member.isfile():
                continue
            if not _may_be_list(name):
                others.append(name)
                continue
            if sum(map(len, files.values())) + member.size > _MOST_BYTES:
                raise Invalid(f"{path}: is larger than any snapshot", hint="take it again with `headroom snapshot`")
            content = archive.extractfile(member)
            files[name] = content.read() if content is not None else b""
    return files, others


def _archive(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    # Without times and owners, so that the same cluster gives the same bytes.
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


class SnapshotCluster(Cluster):
    """ports.Cluster for a snapshot, which is read at the first use."""

    def __init__(self, name: str, read: Callable[[], Snapshot], inventory: InventoryParent | None = None) -> None:
        """name: for messages."""
        self._name = name
        self._read = read
        self._inventory = inventory
        self._view: ClusterView | None = None

    @property
    def name(self) -> str:
        return self._name

    def start(self, changed: Callable[[], None]) -> None:
        """Does nothing, since a snapshot never changes."""

    def view(self) -> ClusterView:
        """The view. Raises `Invalid` if the snapshot cannot be read."""
        if self._view is None:
            snapshot = self._read()
            store = ViewStore(self._inventory, catalog=snapshot.catalog)
            for resource, items in snapshot.objects.items():
                store.replace(resource, items)
            self._view = replace(store.view(), reduced=True, findings=snapshot.findings)
        return self._view

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:  # noqa: ARG002 - as the port has it
        return WriteResult(write, Outcome.REFUSED, f"{self.name} cannot be written to")

    def record(self, event: Event) -> None:
        """Does nothing: a snapshot has no events."""

    def close(self) -> None:
        """Does nothing, since nothing is open."""


def snapshot_at(path: str, inventory: InventoryParent | None = None) -> SnapshotCluster:
    """The snapshot in a folder or archive."""
    return SnapshotCluster(f"snapshot:{path}", partial(read_snapshot, path), inventory)
