"""GitHub and GitLab over HTTP as far as headroom uses them: what is sent is checked against what they publish.

The schemas say of each request which parameters are required and known, with their types and limits; the files with them
name what they were read from. A request that does not fit is answered as the forge would, and kept in `mistakes`, which
every test finds empty. Parameters that are not published are refused too, where the forges would ignore most of them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema_rs

Json = Any
Answer = tuple[int, Json]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """path: its last parts as a pattern; body, query: JSON Schemas; answer: called with the match and the body."""

    method: str
    path: str
    answer: Callable[[re.Match[str], Json], Answer]
    body: Json = None
    query: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """What the next request is answered with, instead of what it asks for. status 0: the connection is cut. done: after it was carried out."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Json = None
    done: bool = False


NOT_FOUND: Answer = (404, {"message": "Not Found"})


class ForgeState:
    """What is behind the endpoints of a forge.

    pulls: whose numbers are in the field `number`; comments: of pull request 7; statuses: as they were sent.
    """

    number = "number"

    def __init__(self, *pulls: dict[str, Any]) -> None:
        self.pulls: list[dict[str, Any]] = list(pulls)
        self.comments: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []

    def pull(self, found: re.Match[str], change: Json) -> Answer:
        """The one that the path names, as it was changed."""
        return _changed(self.pulls, self.number, int(found[1]), change)

    def comment(self, _found: re.Match[str], body: Json) -> Answer:
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": body["body"], **self.marks_of_a_comment(number)})
        return 201, self.comments[-1]

    def marks_of_a_comment(self, number: int) -> dict[str, Any]:
        """What a comment of headroom's has beside its text."""
        raise NotImplementedError

    def edit(self, found: re.Match[str], change: Json) -> Answer:
        return _changed(self.comments, "id", int(found[1]), change)

    def delete(self, found: re.Match[str], _body: Json) -> Answer:
        kept = [each for each in self.comments if each["id"] != int(found[1])]
        is_gone = len(kept) < len(self.comments)
        self.comments = kept
        return (204, None) if is_gone else NOT_FOUND

    def status(self, _found: re.Match[str], body: Json) -> Answer:
        self.statuses.append(body)
        return 201, body


def _changed(rows: list[dict[str, Any]], key: str, number: int, change: Json) -> Answer:
    for row in rows:
        if row[key] == number:
            row.update(change or {})
            return 200, row
    return NOT_FOUND


class ForgeServer:
    """Runs in the `with` block. root: before every path; authorization: what every request must carry.

    faults: taken first, one a request, None for a request without one; asked: method and path of everything; mistakes: requests that a schema refuses;
    page: items on a page, whatever the client would like.
    """

    def __init__(self, root: str, authorization: str, endpoints: list[Endpoint]) -> None:
        self.root = root
        self.authorization = authorization
        self.endpoints = endpoints
        self.faults: list[Fault | None] = []
        self.asked: list[str] = []
        self.mistakes: list[str] = []
        self.page = 2
        self._server = _Server(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{self.root}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, query: dict[str, str], body: Json) -> Answer:
        for endpoint in self.endpoints:
            found = re.fullmatch(endpoint.path, path)
            if found is None or endpoint.method != method:
                continue
            given = {name: value for name, value in query.items() if name != "page"}
            for what, schema, value in (("body", endpoint.body, body), ("query", endpoint.query, given)):
                problem = _problem(schema, value)
                if problem:
                    self.mistakes.append(f"{method} {path}: {what}: {problem}")
                    return 422, {"message": problem}
            return endpoint.answer(found, body)
        self.mistakes.append(f"{method} {path}: there is no such endpoint")
        return NOT_FOUND


def _problem(schema: Json, value: Json) -> str:
    """ "" where it fits; no schema means nothing may be sent."""
    if schema is None:
        return "" if value is None else "a body is sent where none is taken"
    complete = {"type": "object", "additionalProperties": False, **schema}
    try:
        jsonschema_rs.validate(complete, value or {})
    except jsonschema_rs.ValidationError as error:
        return str(error.message)
    return ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, forge: ForgeServer) -> None:
        self.forge = forge
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def _handle(self) -> None:
        forge = self.server.forge
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        parts = urlsplit(self.path)
        forge.asked.append(f"{self.command} {parts.path.removeprefix(forge.root)}")
        fault = forge.faults.pop(0) if forge.faults else None
        if fault is not None and not fault.done:
            return self._fail(fault)
        if self.headers.get("Authorization") != forge.authorization:
            return self._send(401, {"message": "Bad credentials"}, {})
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path) if "%2F" not in parts.path else parts.path
        if not path.startswith(forge.root) and not path.endswith("/graphql"):
            return self._send(404, {"message": "Not Found"}, {})
        status, document = forge.answer(self.command, path.removeprefix(forge.root), query, body)
        if fault is not None:
            return self._fail(fault)
        if isinstance(document, list):
            page = int(query.get("page", "1"))
            chosen = document[(page - 1) * forge.page : page * forge.page]
            headers = {}
            if page * forge.page < len(document):
                following = "&".join(f"{name}={value}" for name, value in {**query, "page": str(page + 1)}.items())
                # Its public address, which is often not the one it is asked at.
                address = f"https://public.example{parts.path}?{following}"
                headers["Link"] = f'<{address}>; rel="next", <{address}>; rel="last"'
            return self._send(status, chosen, headers)
        return self._send(status, document, {})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - the names are the base class's

    def _fail(self, fault: Fault) -> None:
        if fault.status:
            self._send(fault.status, fault.body, fault.headers)
        else:
            self.close_connection = True

    def _send(self, status: int, document: Json, headers: dict[str, str]) -> None:
        content = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is the base class's
        """Nothing: tests are quiet."""
