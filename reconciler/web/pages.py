"""What can be read over HTTP, each page a function without arguments."""

from __future__ import annotations

import re
import threading
from base64 import b64encode
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address

from reconciler.model.errors import Misused
from reconciler.model.redaction import redacted_text

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Response:
    """status: the HTTP status code. tag: the body's ETag, "" for one that is always sent whole. script: the one that the page may run,
    as it stands between its tags."""

    body: bytes
    content_type: str = TEXT
    status: int = 200
    tag: str = ""
    script: str = ""


Page = Callable[[], Response]
_NAME = re.compile(r"[a-z0-9_-][a-z0-9_.-]*")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::\d{0,5})?")
_STYLES = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def protecting_headers(response: Response) -> dict[str, str]:
    """Headers by which a browser runs and loads nothing from elsewhere, and shows the page in no frame.

    The styles of a page are inside of it, so the policy names each by its hash. Of scripts it names only the page's own, which may
    ask this server alone. Markup that got into a page by a defect would run none."""
    styles = _STYLES.findall(response.body) if response.content_type == HTML else []
    policy = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    policy += [f"style-src {' '.join(dict.fromkeys(map(_hash, styles)))}"] if styles else []
    policy += [f"script-src {_hash(response.script.encode())}", "connect-src 'self'"] if response.script else []
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _hash(text: bytes) -> str:
    return f"'sha256-{b64encode(sha256(text).digest()).decode()}'"


def is_known_host(written: str, more: Collection[str] = ()) -> bool:
    """Whether a Host header names this server: an address, localhost, a name without dots, a Service (`*.svc`, `*.svc.cluster.local`),
    or one of `more`.

    None of these is in the public DNS. There a stranger's page may point its own name at this server, to read its pages in a visitor's
    browser (DNS rebinding)."""
    match = _HOST.fullmatch(written.strip())
    if match is None:
        return False
    host = match[1].lower().removesuffix(".")
    if host.startswith("["):
        return _is_address(host[1:-1])
    return "." not in host or host.endswith((".svc", ".svc.cluster.local")) or host in more or _is_address(host)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def named_hosts(setting: str) -> frozenset[str]:
    """The names in the setting `allowedHosts`, in lower case. Raises `Misused` for what is no name of a host."""
    names = {name.strip().lower().removesuffix(".") for name in setting.split(",") if name.strip()}
    for name in sorted(names):
        if _NAME.fullmatch(name) is None:
            raise Misused(
                f"allowedHosts has {name!r}, which is no name of a host",
                hint="write names without scheme and port, with commas between: headroom.example.com",
            )
    return frozenset(names)


def check_page(check: Callable[[], tuple[bool, str]]) -> Page:
    """200 with the check's words, or 503 with what is wrong: for probes, which anybody may read."""

    def page() -> Response:
        good, words = check()
        return Response(f"{redacted_text(words)}\n".encode(), status=200 if good else 503)

    return page


def text_page(exposition: Callable[[], tuple[bytes, str]]) -> Page:
    """Text that comes with its own content type: metrics."""
    return lambda: Response(*exposition())


def tagged(text: str, content_type: str = HTML, script: str = "") -> Response:
    """A response that a client need not be sent again while its body stays the same."""
    body = text.encode()
    return Response(body, content_type, tag=f'"{sha256(body).hexdigest()[:32]}"', script=script)


def kept_page(
    version: Callable[[], Hashable | None], drawn: Callable[[], str], content_type: str = HTML, script: str = ""
) -> Page:
    """A page that is drawn again only when its version is another one than last time; 503 while there is none.

    Drawing takes longer than a probe should wait, and a page that is open in many browsers is asked for often.
    """
    lock = threading.Lock()
    kept: list[tuple[Hashable, Response]] = []

    def page() -> Response:
        with lock:
            current = version()
            if current is None:
                words = "the daemon has not made a pass yet"
                body = f'{{"message": "{words}"}}' if content_type == JSON else words
                return Response(f"{body}\n".encode(), JSON if content_type == JSON else TEXT, 503)
            if not kept or kept[0][0] != current:
                kept[:] = [(current, tagged(drawn(), content_type, script))]
            return kept[0][1]

    return page
