"""JSON over HTTP to a forge: sign-in, pages, rate limits, retries. Failures are typed, and messages never contain the token."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3

from reconciler.model.errors import FORBIDDEN, Failure, Invalid, Stalled, Transient
from reconciler.network import proxy_headers, proxy_of

ATTEMPTS = 4
LONGEST_WAIT = 60.0
"""Seconds that one request waits for a rate limit or an overloaded server, before it fails as transient."""
MOST_BYTES = 32 * 2**20
MOST_PAGES = 100
PAGE_SIZE = 100
_TIMEOUT = urllib3.Timeout(connect=10.0, read=30.0)
_AGAIN = frozenset({429, 500, 502, 503, 504})
_SAFE_TWICE = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_LONGEST_REASON = 300
_NOT_NAMED = "check that the token is valid and may do this"


class GoneError(Invalid):
    """What was asked for does not exist, or this token may not see it."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class ForgeConnection:
    """api: the root of the forge's API, without a trailing slash. authorization: the header's value, which is secret.

    wait: sleeps, replaced in tests. Not thread-safe.
    """

    def __init__(
        self,
        forge: str,
        api: str,
        authorization: str,
        *,
        headers: Mapping[str, str] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._forge = forge
        self._api = api.rstrip("/")
        self._secret = authorization.rpartition(" ")[2]
        self._headers = {
            "Authorization": authorization,
            "Accept": "application/json",
            "User-Agent": "headroom",
            **(headers or {}),
        }
        self._wait = wait
        self._pool = _pool(self._api)

    def close(self) -> None:
        self._pool.clear()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The document at a path."""
        return self._decoded(self._request("GET", self._url(path, query)))

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        again: Collection[int] = (),
        api: str = "",
    ) -> Any:
        """Sends a change; returns the forge's answer, None if that is empty.

        again: statuses that mean that nothing was done and another attempt may succeed. api: another root on the same host.
        """
        return self._decoded(self._request(method, f"{api or self._api}{path}", body, again))

    def pages(self, path: str, query: Mapping[str, str] | None = None, *, size: str = "per_page") -> Iterator[Any]:
        """The items of every page of a list. size: the forge's parameter for the number of items on a page."""
        url: str | None = self._url(path, {**(query or {}), size: str(PAGE_SIZE)})
        for _ in range(MOST_PAGES):
            if url is None:
                return
            answer = self._request("GET", url)
            items = self._decoded(answer)
            if not isinstance(items, list):
                raise Transient(f"{self._forge} did not answer with a list")
            yield from items
            url = self._next(answer, url)

    def _next(self, answer: _Answer, url: str) -> str | None:
        """The next page: the same list with the query that the forge names. A forge behind another address than its public one names that,
        and the token must not go there."""
        for entry in re.split(r",\s*(?=<)", answer.headers.get("link", "")):
            target, _, attributes = entry.partition(";")
            if 'rel="next"' in attributes:
                return f"{url.partition('?')[0]}?{urlsplit(target.strip(' <>')).query}"
        return None

    def _url(self, path: str, query: Mapping[str, str] | None = None) -> str:
        return f"{self._api}{path}" + (f"?{urlencode(query)}" if query else "")

    def _decoded(self, answer: _Answer) -> Any:
        if not answer.body.strip():
            return None
        try:
            return json.loads(answer.body)
        except ValueError as error:
            raise Transient(f"{self._forge} answered with something else than JSON") from error

    def _request(
        self, method: str, url: str, body: Mapping[str, Any] | None = None, again: Collection[int] = ()
    ) -> _Answer:
        left = LONGEST_WAIT
        for attempt in range(1, ATTEMPTS + 1):
            failure, pause = self._attempt(method, url, body, attempt, again)
            if isinstance(failure, _Answer):
                return failure
            if pause is None or attempt == ATTEMPTS or pause > left:
                raise failure
            left -= pause
            self._wait(pause)
        raise AssertionError  # the last attempt has raised or returned

    def _attempt(
        self, method: str, url: str, body: Mapping[str, Any] | None, attempt: int, again: Collection[int]
    ) -> tuple[_Answer | Failure, float | None]:
        """The answer, or a failure with the seconds to wait before another attempt (None: another would not help)."""
        backoff = float(2 ** (attempt - 1))
        try:
            answer = self._once(method, url, body)
        except urllib3.exceptions.HTTPError as error:
            never_sent = isinstance(error, urllib3.exceptions.NewConnectionError)
            reason = self._plain(str(error.__cause__ or error))
            hint = (
                "name a file with the certificate of its authority in SSL_CERT_FILE" if "CERTIFICATE" in reason else ""
            )
            failure = Transient(f"{self._forge} cannot be reached ({reason})", hint=hint)
            return failure, backoff if never_sent or method in _SAFE_TWICE else None
        if answer.status < 300:  # noqa: PLR2004 - success
            return answer, None
        limited = _limited_for(answer)
        if limited is not None:
            # Refused before anything was done, so every method may be repeated.
            return self._failure(method, url, answer), max(limited, backoff)
        # A failed server may still have performed the request.
        safe = answer.status in _AGAIN and (method in _SAFE_TWICE or answer.status == 503)  # noqa: PLR2004 - unavailable
        return self._failure(method, url, answer), backoff if safe or answer.status in again else None

    def _once(self, method: str, url: str, body: Mapping[str, Any] | None) -> _Answer:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        response = self._pool.request(
            method,
            url,
            body=None if body is None else json.dumps(body).encode(),
            headers=headers,
            retries=False,
            redirect=False,
            timeout=_TIMEOUT,
            preload_content=False,
        )
        try:
            content = response.read(MOST_BYTES + 1, decode_content=True)
            if len(content) > MOST_BYTES:
                raise urllib3.exceptions.ResponseError(f"it answers with more than {MOST_BYTES // 2**20} MiB")
        finally:
            response.release_conn()
        return _Answer(response.status, {key.lower(): value for key, value in response.headers.items()}, content)

    def _failure(self, method: str, url: str, answer: _Answer) -> Failure:
        what = f"{method} {urlsplit(url).path}"
        said = self._plain(_said(answer.body))
        told = f"{self._forge} refused {what} ({answer.status}{': ' + said if said else ''})"
        if _limited_for(answer) is not None:
            return Transient(f"{self._forge} limits the rate of requests: {what} was not carried out")
        if answer.status in {401, 403}:
            reason = FORBIDDEN if answer.status == 403 else "AuthenticationFailed"  # noqa: PLR2004 - a known token
            right = self._plain(_missing_right(answer)) if reason == FORBIDDEN else ""
            return Stalled(
                told,
                reason=reason,
                hint=f"the token needs {right}; if it has that, the message says why" if right else _NOT_NAMED,
            )
        if answer.status in {404, 410}:
            return GoneError(
                f"{self._forge} has no {urlsplit(url).path}, or the token may not see it",
                hint="check the repository's name, the number of the pull request and the token's scopes",
            )
        if answer.status >= 500:  # noqa: PLR2004 - a failure of the server
            return Transient(told)
        if answer.status < 400:  # noqa: PLR2004 - a redirect
            moved = self._plain(answer.headers.get("location", "elsewhere"))
            return Invalid(f"{self._forge} sends {what} to {moved}", hint="name the repository as it is called now")
        return Invalid(told)

    def _plain(self, text: str) -> str:
        """The text without the token and control characters, in one line of limited length."""
        clean = text.replace(self._secret, "***") if self._secret else text
        return " ".join("".join(letter if letter.isprintable() else " " for letter in clean).split())[:_LONGEST_REASON]


def _document(body: bytes) -> dict[str, Any]:
    """The answer as an object; empty where it is none."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _said(body: bytes) -> str:
    """The forge's own message, in fields that are the same for all three."""
    document = _document(body)
    said = document.get("message") or document.get("error_description") or document.get("error") or ""
    return " ".join(str(part) for part in (said, document.get("errors")) if part)


def _missing_right(answer: _Answer) -> str:
    """What a token needs for this request, as GitHub and GitLab tell; "" where they do not. Gitea tells it in its message."""
    scope = answer.headers.get("x-accepted-oauth-scopes") or _document(answer.body).get("scope")
    needed = {"permission": answer.headers.get("x-accepted-github-permissions"), "scope": scope}
    return next((f"the {kind} {name}" for kind, name in needed.items() if name), "")


def _limited_for(answer: _Answer) -> float | None:
    """Seconds until the rate limit ends; None if the answer is about something else.

    GitHub's secondary limits say so in their words, often with no time. Its headers then tell of the hourly limit, which has not run out.
    """
    headers = answer.headers
    exhausted = "0" in (headers.get("x-ratelimit-remaining"), headers.get("ratelimit-remaining"))
    named = b"rate limit" in answer.body.lower()
    after = headers.get("retry-after", "")
    if answer.status != 429 and not (answer.status == 403 and (exhausted or named or after)):  # noqa: PLR2004 - GitHub's way
        return None
    if after.isascii() and after.isdigit():
        return float(after)
    reset = headers.get("x-ratelimit-reset") or headers.get("ratelimit-reset") or ""
    if exhausted and reset.isascii() and reset.isdigit():
        return max(1.0, float(reset) - time.time())
    return LONGEST_WAIT if exhausted or named else 1.0


def _pool(api: str) -> urllib3.PoolManager:
    """A pool that uses the environment's proxy, unless that excludes this host. Raises `Invalid`."""
    proxy = proxy_of(api)
    if not proxy:
        return urllib3.PoolManager(maxsize=1)
    return urllib3.ProxyManager(proxy, maxsize=1, proxy_headers=proxy_headers(proxy))
