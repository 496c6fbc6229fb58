"""Lists in Kubernetes' protobuf, which costs an API server a third of what JSON does.

What is read of an object, and under which number, is told by its wire struct, so that JSON and protobuf cannot differ in it. All
other fields are skipped in C. Source: Kubernetes API concepts, "Alternate representations of resources".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec

from reconciler.cluster.decoding.wire import ListMetadataWire, ListWire, NodeWire, PodWire, Texts
from reconciler.cluster.resources import NODES, PODS, Resource
from reconciler.manifests.pods.pod_spec_wire import Once, Quantities, Wire
from reconciler.model.errors import Invalid

PROTOBUF = "application/vnd.kubernetes.protobuf"
Message = Any
"""A message of the `protobuf` package, which has no types."""
_MAGIC = b"k8s\0"
_PACKAGE = "headroom"
_MOST_KNOWN = 4096
"""Values of one field that are kept, since they come again soon: replicas of a workload follow each other in a list."""
_OBJECTS: dict[tuple[str, str], type[Wire]] = {PODS.key: PodWire, NODES.key: NodeWire}
_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class _TimeWire(Wire, frozen=True):
    seconds: Annotated[int, 1] = 0


class _AmountWire(Wire, frozen=True):
    string: Annotated[str, 1] = ""


class _TextWire(Wire, frozen=True):
    """An entry of a map. A repeated field keeps the server's order, so that equal maps have equal bytes."""

    key: Annotated[str, 1] = ""
    value: Annotated[str, 2] = ""


class _QuantityWire(Wire, frozen=True):
    key: Annotated[str, 1] = ""
    value: Annotated[_AmountWire, 2] = _AmountWire()


def time_of(message: Message) -> datetime | None:
    return _instant(message.seconds)


@lru_cache(_MOST_KNOWN)
def _instant(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


_SCALARS: dict[Any, int] = {str: 9, bool: 8, int: 3, bytes: 12}
"""Their types in a FieldDescriptorProto. An int64 reads integers of every width."""
_MADE_OF: dict[Any, tuple[Any, Callable[[Any], Any]]] = {
    datetime: (_TimeWire, time_of),
    Texts: (tuple[_TextWire, ...], lambda entries: {entry.key: entry.value for entry in entries}),
    Quantities: (tuple[_QuantityWire, ...], lambda entries: {entry.key: entry.value.string for entry in entries}),
}
"""What any other type is in protobuf, and how it is read from that."""


def has(resource: Resource) -> bool:
    """Whether objects of this kind can be read from protobuf."""
    return resource.key in _OBJECTS


def is_protobuf(data: bytes) -> bool:
    return data.startswith(_MAGIC)


def page_of(resource: Resource, data: bytes) -> ListWire:
    """A page of a list, with items for `object_of`. Raises `Invalid`."""
    page = _message(_list_of(_OBJECTS[resource.key]), data)
    page.DiscardUnknownFields()
    return ListWire(f"{resource.kind}List", _reader(ListMetadataWire)(page.metadata), page.items)


def object_of(resource: Resource, message: Message) -> Any:
    """The wire struct of an item. What is equal in several items is often the same object."""
    return _reader(_OBJECTS[resource.key])(message)


def single(kind: type[_Kind], data: bytes) -> _Kind:
    """An object that does not come in lists, such as a Status. Raises `Invalid`."""
    found: _Kind = _reader(kind)(_message(kind, data))
    return found


def _message(kind: type[msgspec.Struct], data: bytes) -> Message:
    from google.protobuf.message import DecodeError

    try:
        return _class_of(_envelope_of(kind)).FromString(data[len(_MAGIC) :]).raw
    except DecodeError as error:
        raise Invalid("is not the protobuf of an API server") from error


@cache
def _envelope_of(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """runtime.Unknown, in which every object comes. Its bytes are declared as the message that they are, which saves a copy."""
    return msgspec.defstruct("Envelope", [("raw", Annotated[kind, 2])])


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that is read.

    path: its number, after that of the message that JSON has inline. kind: a scalar or a struct. read: for a value other than a scalar.
    """

    name: str
    path: tuple[int, ...]
    kind: Any
    repeated: bool
    read: Callable[[Any], Any] | None
    default: Any


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    return tuple(_field(item) for item in msgspec.structs.fields(kind) if get_origin(item.type) is Annotated)


def _field(item: msgspec.structs.FieldInfo) -> _Field:
    python_type, *path = get_args(item.type)
    if isinstance(python_type, UnionType):
        python_type = next(each for each in get_args(python_type) if each is not NoneType)
    made_of, read = _MADE_OF.get(python_type, (python_type, None))
    repeated = get_origin(made_of) is tuple
    kind = get_args(made_of)[0] if repeated else made_of
    if read is None and kind not in _SCALARS:
        each = _reader(kind)
        read = (lambda messages: tuple([each(message) for message in messages])) if repeated else each
    if isinstance(path[-1], Once) and read is not None:
        read, kind = _once(read, _class_of(kind).FromString, repeated=repeated), bytes
    return _Field(item.name, tuple(path), kind, repeated, read, item.default)


def _once(read: Callable[[Any], Any], parse: Callable[[bytes], Message], *, repeated: bool) -> Callable[[Any], Any]:
    """Reads what is kept as bytes."""
    if not repeated:
        return lru_cache(_MOST_KNOWN)(lambda raw: read(parse(raw)))
    known = lru_cache(_MOST_KNOWN)(lambda raws: read([parse(raw) for raw in raws]))
    return lambda raws: known(tuple(raws))


@cache
def _reader(kind: type[msgspec.Struct]) -> Callable[[Message], Any]:
    """Makes the struct of a message: a function with one expression for each field, as `dataclasses` makes methods."""
    names: dict[str, Any] = {"kind": kind}
    arguments: list[str] = []
    for field in _fields(kind):
        names[f"default_{field.name}"], names[f"read_{field.name}"] = field.default, field.read
        owner = "message" if len(field.path) == 1 else f"message.{_inline_name(field)}"
        value = f"{owner}.{field.name}"
        read = f"read_{field.name}({value})" if field.read else f"tuple({value})" if field.repeated else value
        # JSON has no field where protobuf has an empty text or list; other values may be 0 or False.
        is_there = value if field.repeated or field.kind is str else f"{owner}.HasField({field.name!r})"
        is_needed = field.default is msgspec.NODEFAULT
        arguments.append(f"{field.name}={read}" + ("" if is_needed else f" if {is_there} else default_{field.name}"))
    made: Callable[[Message], Any] = eval(f"lambda message: kind({', '.join(arguments)})", names)  # noqa: S307
    return made


def _inline_name(field: _Field) -> str:
    return f"inline_{field.path[0]}"


@cache
def _list_of(kind: type[Wire]) -> type[msgspec.Struct]:
    items = ("items", Annotated[tuple[kind, ...], 2])  # type: ignore[valid-type]
    return msgspec.defstruct(f"{kind.__name__}List", [("metadata", Annotated[ListMetadataWire, 1]), items])


@cache
def _class_of(kind: type[msgspec.Struct]) -> Any:
    """The class of its messages."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=_PACKAGE, package=_PACKAGE)
    name = _described(file, kind.__name__, _fields(kind))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name.lstrip(".")))


def _described(file: Any, name: str, fields: Sequence[_Field]) -> str:
    """The full name of a message, which is added to the FileDescriptorProto with all that is within it."""
    full_name = f".{_PACKAGE}.{name}"
    if any(message.name == name for message in file.message_type):
        return full_name
    message = file.message_type.add(name=name)
    inline: dict[str, list[_Field]] = {}
    for field in fields:
        if len(field.path) > 1:
            inline.setdefault(_inline_name(field), []).append(replace(field, path=field.path[1:]))
            continue
        made = message.field.add(name=field.name, number=field.path[0], label=3 if field.repeated else 1)
        if field.kind in _SCALARS:
            made.type = _SCALARS[field.kind]
        else:
            made.type, made.type_name = 11, _described(file, field.kind.__name__, _fields(field.kind))
    for called, inner in inline.items():
        made = message.field.add(name=called, number=int(called.rpartition("_")[2]), label=1, type=11)
        made.type_name = _described(file, f"{name}_{called}", inner)
    return full_name
