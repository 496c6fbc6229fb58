"""Messages between headroom and the process that renders: JSON objects, each after its length in bytes.

Only plain data crosses, so that a template that takes over the other process cannot reach this one.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

_LENGTH = struct.Struct(">Q")
_MOST = 128 * 2**20
"""The largest message in bytes: every template of the largest repository, as JSON."""
_PIECE = 2**16


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as bytes. Raises ValueError and TypeError for values that JSON cannot represent."""
    body = json.dumps(message).encode()
    return _LENGTH.pack(len(body)) + body


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next message; None if the other side has ended. Raises OSError, and ValueError for anything but a message."""
    head = _exactly(channel, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > _MOST:
        raise ValueError(f"a message of {length} bytes")
    body = _exactly(channel, length)
    if body is None:
        return None
    message = json.loads(body)
    if not isinstance(message, dict):
        raise TypeError("a message is an object")
    return message


def _exactly(channel: socket.socket, length: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < length:
        piece = channel.recv(min(_PIECE, length - len(pieces)))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
