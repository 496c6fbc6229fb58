"""Requests to an API server at a bounded rate, and answers as raw bytes.

Calls of the `kubernetes` package turn every object into model classes, which takes a hundred times as long as decoding a few fields.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec

from reconciler import __version__
from reconciler.cluster.access import Access, authorized, lost
from reconciler.cluster.decoding import protobuf
from reconciler.cluster.server_clock import ServerClock
from reconciler.model.errors import Invalid, Transient, Waiting

JSON = "application/json"
USER_AGENT = f"headroom/{__version__}"
UNAUTHORIZED = 401
FORBIDDEN = 403
_DENIED = re.compile(r'User ("[^"]*") cannot (list|watch) resource')
NOT_FOUND = 404
CONFLICT = 409
GONE = 410
TOO_MANY = 429
_CONNECT_SECONDS = 5
_PER_SECOND, _BURST = 100, 200
"""Calls to one API server."""
_GZIP = 16 + zlib.MAX_WBITS
_MOST_AT_ONCE = 64 * 2**20
"""Bytes that are set aside for a body before it is unpacked, whatever size it claims."""

Query = Sequence[tuple[str, str]]
Count = Callable[[str, str, str], None]
"""(method, resource, HTTP status or `error`): for metrics."""


def uncounted(_method: str, _resource: str, _code: str) -> None:
    """For a process without metrics."""


class RateLimit:
    """Allows `per_second` calls in the long run, `burst` at once. Thread-safe: each caller waits for its own turn."""

    def __init__(
        self, per_second: float, burst: int, *, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._interval = 1 / per_second
        self._slack = self._interval * (burst - 1)
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._next = clock() - self._slack

    def wait(self) -> None:
        """Blocks until the caller may proceed."""
        with self._lock:
            now = self._clock()
            self._next = max(self._next, now - self._slack)
            turn, self._next = self._next, self._next + self._interval
        if turn > now:
            self._sleep(turn - now)


class CauseWire(msgspec.Struct):
    reason: Annotated[str, 1] = ""
    message: Annotated[str, 2] = ""
    field: Annotated[str, 3] = ""


class DetailsWire(msgspec.Struct):
    causes: Annotated[tuple[CauseWire, ...] | None, 4] = None


class StatusWire(msgspec.Struct):
    """A metav1.Status: an API server's refusal."""

    message: Annotated[str, 3] = ""
    reason: Annotated[str, 4] = ""
    code: int = 0
    details: Annotated[DetailsWire | None, 5] = None


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status < 300  # noqa: PLR2004 - an API server does not redirect

    def failure(self) -> StatusWire:
        """The server's status; made from the bare text if the answer is not one."""
        try:
            status = (
                protobuf.single(StatusWire, self.data)
                if protobuf.is_protobuf(self.data)
                else msgspec.json.decode(self.data, type=StatusWire)
            )
        except (msgspec.MsgspecError, Invalid):
            status = StatusWire(self.data.decode(errors="replace").strip())
        status.message = status.message[:2000] or f"HTTP status {self.status}"
        status.code = self.status
        return status

    @property
    def refusal(self) -> str:
        """Why the server refused. An account without rights is told in the same words for every kind, so that they are told together."""
        if self.status == UNAUTHORIZED:
            return "the server does not accept our credentials"
        message = self.failure().message
        denied = _DENIED.search(message)
        if denied is None:
            return message
        return f"User {denied[1]} may not {denied[2]} them (config/rbac has the roles that headroom needs)"


class RefusedError(Transient):
    """The server's answer was a refusal. what: begins the message."""

    def __init__(self, answer: Answer, what: str = "") -> None:
        super().__init__(f"{what}{answer.refusal}")
        self.answer = answer


@dataclass(frozen=True, slots=True)
class _Call:
    """read: seconds to wait for more of the answer. guarded: it is not sent while there is a hindrance."""

    method: str
    path: str
    read: float
    query: Query = ()
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    resource: str = ""
    guarded: bool = False

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(list(self.query))}" if self.query else self.path


class Connection:
    """Calls to one API server. Thread-safe. A token that is refused is read again once, since it may have been rotated."""

    def __init__(
        self,
        load: Callable[[], Access],
        *,
        timeout: float = 30,
        count: Count = uncounted,
    ) -> None:
        self._load = load
        self._timeout = timeout
        self._count = count
        self._limit = RateLimit(_PER_SECOND, _BURST, clock=time.monotonic, sleep=time.sleep)
        self._lock = Lock()
        self._loading = Lock()
        """Another one, since a plugin that is asked for credentials may hang."""
        self._access: Access | None = None
        self._streams: set[Any] = set()
        self._closed = False
        self._hindrance: Callable[[], str] = lambda: ""
        self._seconds_left: Callable[[], float] = lambda: inf
        self.server_clock = ServerClock()
        self._writes = 0

    def write_only_unless(self, hindrance: Callable[[], str], seconds_left: Callable[[], float] = lambda: inf) -> None:
        """From now on calls `hindrance` right before each write: it returns why the write must not be sent, or "".

        It is called that late because a pass takes long, and a replica may lose its leadership in the middle of one. It is called again
        before a write that is sent a second time, with new credentials. seconds_left: how long a write may take at most.
        """
        self._hindrance, self._seconds_left = hindrance, seconds_left

    @property
    def hindrance(self) -> str:
        """Why no write may be sent now, "" if one may."""
        return self._hindrance()

    @property
    def is_writing(self) -> bool:
        """Whether a write is under way that the server may still perform."""
        with self._lock:
            return self._writes > 0

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        resource: str = "",
        always: bool = False,
        seconds: float = inf,
    ) -> Answer:
        """One call and its whole answer, whatever the status. Raises `Transient` if none came.

        A write raises `Waiting` while there is a hindrance. always: ignores hindrances (for the Lease, which decides about them).
        seconds: to wait for the answer, where that is less than usual.
        """
        self._limit.wait()
        guarded = method != "GET" and not always
        call = _Call(method, path, min(self._timeout, seconds), query, body, headers or {}, resource, guarded)
        if not guarded:
            return self._ask(call)
        with self._writing():
            return self._ask(call)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Counts a write. It counts before the hindrance is checked: once there is a hindrance, a count of zero stays zero."""
        with self._lock:
            self._writes += 1
        try:
            yield
        finally:
            with self._lock:
                self._writes -= 1

    def _ask(self, call: _Call) -> Answer:
        response = self._open(call)
        import urllib3

        try:
            data = response.read(decode_content=False)
            packed = response.headers.get("Content-Encoding") == "gzip"
            return Answer(response.status, _unpacked(data) if packed else data, response.headers)
        except (urllib3.exceptions.HTTPError, OSError, zlib.error) as error:
            raise Transient(lost(self._host, error)) from error
        finally:
            response.release_conn()

    @contextmanager
    def stream(
        self, path: str, *, query: Query, silence: float, resource: str = ""
    ) -> Iterator[Answer | Iterator[bytes]]:
        """Lines as they come, until the server ends the stream; an `Answer` if it refuses.

        silence: seconds without a line after which the stream is given up. Raises `Transient` if the connection is lost.
        """
        self._limit.wait()
        response = self._open(_Call("GET", path, silence, query, resource=resource))
        import urllib3

        with self._lock:
            self._streams.add(response)
        try:
            if self._closed:
                raise Transient("the connection is being closed")
            if response.status >= 300:  # noqa: PLR2004 - see Answer
                yield Answer(response.status, response.read(decode_content=True), response.headers)
            else:
                yield _lines(response)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(lost(self._host, error)) from error
        finally:
            with self._lock:
                self._streams.discard(response)
            response.close()

    def close(self) -> None:
        """Ends every stream at once and allows no new one."""
        with self._lock:
            self._closed = True
            for response in self._streams:
                with suppress(OSError, ValueError, RuntimeError):
                    response.shutdown()
        if self._access is not None:
            self._access.pool.clear()

    @property
    def _host(self) -> str:
        return self._access.host if self._access is not None else "the API server"

    def _open(self, call: _Call) -> Any:
        access = self._accessed()
        response = self._send(access, call)
        if response.status == UNAUTHORIZED:
            response.drain_conn()
            response = self._send(self._accessed(instead_of=access), call)
        return response

    def _accessed(self, instead_of: Access | None = None) -> Access:
        access = self._access
        if access is not None and access is not instead_of and not self._closed:
            return access
        with self._loading:
            if not self._closed and (self._access is None or self._access is instead_of):
                try:
                    self._access = self._load()
                except Invalid as error:  # it may be in the middle of being replaced
                    raise Transient(error.message, hint=error.hint) from error
            if self._closed or self._access is None:
                raise Transient("the connection is being closed")
            return self._access

    def _send(self, access: Access, call: _Call) -> Any:
        import urllib3

        headers = {"User-Agent": USER_AGENT, "Accept": JSON, **authorized(access), **call.headers}
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=call.read)
        if call.guarded:
            why_not, left = self._hindrance(), self._seconds_left()
            if why_not or left <= 0:
                raise Waiting(why_not or "another replica may lead by now")
            if left < inf:
                timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, left), read=min(call.read, left), total=left)
        try:
            response = access.pool.request(
                call.method,
                access.host + call.url,
                body=call.body,
                headers=headers,
                timeout=timeout,
                preload_content=False,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self._count(call.method, call.resource, "error")
            raise Transient(lost(access.host, error)) from error
        self.server_clock.hear(response.headers.get("Date"))
        self._count(call.method, call.resource, str(response.status))
        return response


def _unpacked(data: bytes) -> bytes:
    """A gzip body, in one step and without copies: a page of a list has megabytes. Its last four bytes tell its size (RFC 1952, 2.3.1)."""
    size = int.from_bytes(data[-4:], "little")
    return zlib.decompress(data, _GZIP, min(max(size, 1), _MOST_AT_ONCE))


def _lines(response: Any) -> Iterator[bytes]:
    """The complete lines. One that the end of the stream cut off is dropped."""
    rest = b""
    for chunk in response.stream(amt=None, decode_content=False):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line)
