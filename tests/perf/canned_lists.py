"""Lists of a cluster served from memory over HTTP, as an API server would send them: what headroom alone costs, without a server's own work.

Pages are compressed once. Watches are silent, and nothing can be written.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from reconciler.cluster.resources import CONFIG_MAPS, RESOURCES, Resource
from reconciler.cluster.watch import PAGE
from tests.perf.stored_cluster import Stored

_NAMES_IN_ETCD = {"minions": "nodes"}
Pages = dict[str, list[bytes]]


@contextmanager
def served(objects: Iterable[Stored], work: Path) -> Iterator[Path]:
    """A kubeconfig for a server with these objects."""
    pages = _pages(objects)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            if parts.path in {"/api", "/apis"}:
                self._send(gzip.compress(_discovery(core=parts.path == "/api")))
            elif "watch" in query:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                stopping.wait()
            else:
                found = pages.get(parts.path.rpartition("/")[2], [_page([], "")])
                self._send(found[int(query.get("continue", "0"))])

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    stopping = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = work / "canned.kubeconfig"
    names = {"cluster": "canned", "user": "canned"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "canned",
        "contexts": [{"name": "canned", "context": names}],
        "clusters": [{"name": "canned", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "canned", "user": {"token": "none"}}],
    }
    kubeconfig.write_text(json.dumps(document))
    try:
        yield kubeconfig
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()


def _pages(objects: Iterable[Stored]) -> Pages:
    pages: Pages = {}
    waiting: dict[str, list[str]] = {}

    def flush(plural: str, *, last: bool) -> None:
        found = pages.setdefault(plural, [])
        found.append(_page(waiting.pop(plural, []), "" if last else str(len(found) + 1)))

    for key, text in objects:
        parts = key.split("/")
        plural = parts[3] if "." in parts[2] else _NAMES_IN_ETCD.get(parts[2], parts[2])
        if len(waiting.get(plural, ())) == PAGE:
            flush(plural, last=False)
        waiting.setdefault(plural, []).append(text)
    for plural in list(waiting):
        flush(plural, last=True)
    return pages


def _page(items: list[str], token: str) -> bytes:
    metadata = json.dumps({"resourceVersion": "1", **({"continue": token} if token else {})})
    text = f'{{"kind":"List","apiVersion":"v1","metadata":{metadata},"items":[{",".join(items)}]}}'
    return gzip.compress(text.encode(), 1)


def _discovery(*, core: bool) -> bytes:
    kinds = [each for each in (*RESOURCES, CONFIG_MAPS) if bool(each.group) is not core]
    groups = {each.group: [other for other in kinds if other.group == each.group] for each in kinds}
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {"version": version, "resources": [_served(each) for each in found if version == each.versions[0]]}
                for version in dict.fromkeys(each.versions[0] for each in found)
            ],
        }
        for group, found in groups.items()
    ]
    return json.dumps({"kind": "APIGroupDiscoveryList", "items": items}).encode()


def _served(resource: Resource) -> dict[str, object]:
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return {"resource": resource.plural, "responseKind": {"kind": resource.kind}, "scope": scope}
