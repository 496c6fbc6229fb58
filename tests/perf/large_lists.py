"""Lists of a large cluster served from memory over HTTP, as an API server would send them: what headroom alone costs, without a server's own work.

Objects are always the same, and as large as those of a real cluster. Pages are compressed once. Watches are silent, and nothing can be written.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

from reconciler.cluster.resources import CONFIG_MAPS, RESOURCES, Resource
from reconciler.cluster.watch import PAGE
from tests.kubeconfigs import write_kubeconfig

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c")
NAMESPACES = 40
PODS_OF_ONE = 30
"""Pods of one Deployment, which has two old ReplicaSets beside the one in use."""
_SIZES = (("100m", "128Mi"), ("250m", "256Mi"), ("500m", "512Mi"), ("500m", "1Gi"))
_CLAIM = "{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}"
_LABELS = """{kubernetes.io/hostname: NAME, kubernetes.io/arch: amd64, kubernetes.io/os: linux, karpenter.sh/nodepool: general,
  node.kubernetes.io/instance-type: s-32x-amd64-linux, karpenter.sh/capacity-type: on-demand, karpenter.sh/initialized: "true",
  karpenter.sh/registered: "true", topology.kubernetes.io/region: test-region, topology.kubernetes.io/zone: ZONE}"""
_ROOM = '{cpu: "32", memory: 128Gi, ephemeral-storage: 100Gi, pods: "110"}'
_READY = (
    '{type: Ready, status: "True", lastTransitionTime: "2026-11-01T08:00:00Z", reason: IsReady, message: it is ready}'
)
_METADATA = """name: NAME, uid: uid-NAME, creationTimestamp: "2026-11-01T08:00:00Z", managedFields: [{manager: controller, operation: Update,
  apiVersion: v1, time: "2026-11-01T08:00:00Z", fieldsType: FieldsV1, fieldsV1: MANAGED}]"""
_POD_SPEC = """{restartPolicy: Always, terminationGracePeriodSeconds: 30, dnsPolicy: ClusterFirst, serviceAccountName: APP, schedulerName: default-scheduler,
  securityContext: {runAsNonRoot: true}, containers: [{name: main, image: "registry.example.com/team/APP:1.2.3", env: ENVIRONMENT,
  ports: [{name: http, containerPort: 8080, protocol: TCP}], resources: {requests: {cpu: CPU, memory: MEMORY}, limits: {memory: MEMORY}},
  livenessProbe: {httpGet: {path: /healthz, port: 8080}}, readinessProbe: {httpGet: {path: /healthz, port: 8080}}, imagePullPolicy: IfNotPresent}]}"""
_OF_A_TEAM = f"{{namespace: TEAM, labels: {{app.kubernetes.io/name: APP, example.com/team: TEAM}}, {_METADATA}}}"
_SELECTOR = "{matchLabels: {app.kubernetes.io/name: APP}}"
_TEMPLATE = f"{{metadata: {{labels: {{app.kubernetes.io/name: APP, example.com/team: TEAM}}}}, spec: {_POD_SPEC}}}"
_POD_METADATA = f"""{_OF_A_TEAM[:-1]}, generateName: APP-7d4b9c-, annotations: {{prometheus.io/scrape: "true", prometheus.io/port: "8080"}},
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: APP-0, uid: uid-APP-0, controller: true, blockOwnerDeletion: true}}]}}"""
_LASTING = "operator: Exists, effect: NoExecute, tolerationSeconds: 300"
_ADMITTED = f"""priority: 0, preemptionPolicy: PreemptLowerPriority, enableServiceLinks: true, serviceAccount: APP,
  tolerations: [{{key: node.kubernetes.io/not-ready, {_LASTING}}}, {{key: node.kubernetes.io/unreachable, {_LASTING}}}],
  volumes: [{{name: kube-api-access-x7k2p, projected: {{defaultMode: 420, sources: [{{serviceAccountToken: {{expirationSeconds: 3607, path: token}}}},
    {{configMap: {{name: kube-root-ca.crt, items: [{{key: ca.crt, path: ca.crt}}]}}}}]}}}}]"""
"""What admission adds to a pod."""
_POD_CONDITIONS = ", ".join(
    _READY.replace("Ready", kind) for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
)
_POD_STATUS = f"""{{phase: Running, conditions: [{_POD_CONDITIONS}], hostIP: 10.0.0.1, hostIPs: [{{ip: 10.0.0.1}}], podIP: 10.1.0.1, podIPs: [{{ip: 10.1.0.1}}],
  startTime: "2026-11-01T08:00:00Z", qosClass: Burstable, containerStatuses: [{{name: main, image: "registry.example.com/team/APP:1.2.3", ready: true,
  imageID: "registry.example.com/team/APP@sha256:7d4b9c7d4b9c7d4b9c7d4b9c7d4b9c7d4b9c7d4b9c7d4b9c7d4b9c7d4b9c7d4b", containerID: "containerd://uid-NAME",
  restartCount: 0, started: true, state: {{running: {{startedAt: "2026-11-01T08:00:00Z"}}}}}}]}}"""
_TEXTS = {
    "namespaces": "metadata: {name: NAME, labels: {kubernetes.io/metadata.name: NAME}}\nstatus: {phase: Active}",
    "nodepools": f"metadata: {{{_METADATA}}}\nspec: {{template: {{spec: {{nodeClassRef: {_CLAIM}, requirements: []}}}}}}",
    "nodes": f"metadata: {{labels: {_LABELS}, {_METADATA}}}\nspec: {{providerID: 'kwok://NAME'}}\n"
    f"status: {{allocatable: {_ROOM}, capacity: {_ROOM}, conditions: [{_READY}], images: IMAGES}}",
    "nodeclaims": f"metadata: {{labels: {_LABELS}, {_METADATA}}}\nspec: {{nodeClassRef: {_CLAIM}, requirements: []}}\n"
    f"status: {{nodeName: NAME, providerID: 'kwok://NAME', allocatable: {_ROOM}, capacity: {_ROOM}, conditions: [{_READY}]}}",
    "deployments": f"metadata: {_OF_A_TEAM}\nspec: {{replicas: COUNT, selector: {_SELECTOR}, template: {_TEMPLATE}}}\nstatus: {{replicas: COUNT}}",
    "replicasets": f"metadata: {_OF_A_TEAM[:-1]}, ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: APP, uid: uid-APP, controller: true,"
    f" blockOwnerDeletion: true}}]}}\nspec: {{replicas: COUNT, selector: {_SELECTOR}, template: {_TEMPLATE}}}\nstatus: {{replicas: COUNT}}",
    "pods": f"metadata: {_POD_METADATA}\nspec: {_POD_SPEC[:-1]}, {_ADMITTED}, nodeName: NODE}}\nstatus: {_POD_STATUS}",
}
"""YAML of an object by the plural of its kind. Words in capitals stand for values of its own."""
_LARGE = {
    "MANAGED": {f"f:part-{number}": {"f:field": {}, "f:another": {}} for number in range(40)},
    "IMAGES": [
        {"names": [f"registry.example.com/team/image-{each}@sha256:{each:064x}"], "sizeBytes": 10_000_000 + each}
        for each in range(40)
    ],
    "ENVIRONMENT": [{"name": f"SETTING_{each}", "value": f"a value of setting {each} of APP"} for each in range(12)],
}
Pages = dict[str, list[bytes]]


def objects(nodes: int, pods: int) -> Iterator[tuple[str, str]]:
    """The plural of each object's kind, and its JSON: nodes of 32 CPUs with what belongs to them, pods spread over them, and their workloads."""
    templates = {plural: json.dumps(yaml.safe_load(text)) for plural, text in _TEXTS.items()}
    for word, value in _LARGE.items():
        templates = {plural: text.replace(f'"{word}"', json.dumps(value)) for plural, text in templates.items()}

    def made(plural: str, **words: object) -> tuple[str, str]:
        text = templates[plural]
        for word, value in words.items():
            text = text.replace(f'"{word}"', str(value)) if isinstance(value, int) else text.replace(word, str(value))
        return plural, text

    yield made("nodepools", NAME="general")
    for number in range(NAMESPACES):
        yield made("namespaces", NAME=f"team-{number}")
    for number in range(nodes):
        for plural in ("nodes", "nodeclaims"):
            yield made(plural, NAME=f"node-{number:05}", ZONE=ZONES[number % len(ZONES)])
    for number in range(-(-pods // PODS_OF_ONE)):
        cpu, memory = _SIZES[number % len(_SIZES)]
        count = min(PODS_OF_ONE, pods - number * PODS_OF_ONE)
        app = {"APP": f"app-{number:05}", "TEAM": f"team-{number % NAMESPACES}", "CPU": cpu, "MEMORY": memory}
        yield made("deployments", NAME=app["APP"], COUNT=count, **app)
        for age in range(3):
            yield made("replicasets", NAME=f"{app['APP']}-{age}", COUNT=0 if age else count, **app)
        for each in range(count):
            node = f"node-{(number * PODS_OF_ONE + each) % nodes:05}"
            yield made("pods", NAME=f"{app['APP']}-0-{each:05}", NODE=node, **app)


@contextmanager
def served(nodes: int, pods: int, work: Path) -> Iterator[Path]:
    """A kubeconfig for a server with these objects."""
    pages = _pages(nodes, pods)

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
            headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "Content-Length": str(len(body))}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    stopping = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield write_kubeconfig(work / "canned.kubeconfig", f"http://127.0.0.1:{server.server_port}")
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()


def _pages(nodes: int, pods: int) -> Pages:
    waiting: dict[str, list[str]] = {}
    for plural, text in objects(nodes, pods):
        waiting.setdefault(plural, []).append(text)
    return {
        plural: [
            _page(texts[at : at + PAGE], str(at // PAGE + 1) if at + PAGE < len(texts) else "")
            for at in range(0, len(texts), PAGE)
        ]
        for plural, texts in waiting.items()
    }


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
