"""A seeded fuzzer: whatever a repository holds becomes documents and findings, and stops nothing.

`HEADROOM_FUZZ=100000` tries so many inputs; a failure names its seed, and `HEADROOM_FUZZ_SEED` repeats that one alone.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.demand.buffers import buffer_demands
from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.repository.declared import read
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.buffers import Dialect
from reconciler.model.view import ClusterView

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
INPUTS = int(os.environ.get("HEADROOM_FUZZ", "700"))
SHARDS = 10
ONLY = os.environ.get("HEADROOM_FUZZ_SEED")

SEEDS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples-repo").rglob("*.yaml"))] + [
    """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: total, namespace: shop, annotations: {headroom.dev/lead-time: 10m, headroom.dev/replicas-from: hours}}
spec:
  targetRef: {kind: NodePool, name: general}
  capacity: {nodeClass: {totalCpu: 12, totalMem: 20Gi, perChunkResources: {cpu: 500m, memory: 1Gi}}}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec:
  schedule:
    timezone: America/New_York
    defaultReplicas: 2
    behaviors:
    - {replicas: 5, priority: 1, start: {weekdays: "Mon,Tue", hours: 9}, end: {weekdays: [Mon, Tue], hours: "17", minutes: 30}}
    - {replicas: 0, start: {months: Nov, days: "27,28"}, end: {days: 29, months: 11}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
  annotations: {headroom.dev/timezone: Europe/Berlin, headroom.dev/allow-windows: "0 22 * * mon-fri for 8h Drifted"}
spec:
  weight: 3
  limits: {cpu: "100", memory: 400Gi, nodes: 12}
  disruption:
    consolidateAfter: 1m
    budgets:
    - {nodes: 10%, reasons: [Drifted, empty]}
    - {nodes: "3", schedule: "0 9 * * mon-fri", duration: 8h30m}
  template:
    metadata: {labels: {team: a}}
    spec:
      expireAfter: 720h
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64], minValues: 2}
      - {key: example.com/cores, operator: Gt, values: ["4"]}
      taints: [{key: a, value: b, effect: NoSchedule}]
---
apiVersion: v1
kind: PodTemplate
metadata: {name: shape, namespace: shop}
template:
  spec:
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
      {matchExpressions: [{key: cores, operator: Gt, values: ["4"]}]}]}}}
    containers: [{name: app, resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 1Gi}}}]
---
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: train, namespace: shop}
spec:
  provisioningClassName: check-capacity.autoscaling.x-k8s.io
  parameters: {ValidUntilSeconds: "600"}
  podSets: [{count: 4, podTemplateRef: {name: shape}}]
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheaper}
spec: {weight: 1, priceAdjustment: -10%, requirements: [{key: a, operator: Exists}], capacity: {example.com/gpu: 1}}
"""
]

DOCUMENTS = [document for text in SEEDS for document in yaml.load_all(text, Loader=yaml.CSafeLoader)]
NASTY: tuple[Any, ...] = (
    None, True, "", " ", "9" * 5000, "-" + "9" * 5000, "0" * 5000 + "1", "0" * 5000 + "7%", "0" * 5000, "+0", "-0",
    "1e400", "00:00", 0, -1, "0x" + "f" * 5000, "1" * 4301 + "m", "9" * 5000 + "%", "1e999", "1e-999", "." * 300,
    10**18, -(10**18), 1e300, 0.1, "1h" * 3000, "9" * 5000 + "h", "*/" + "9" * 5000, "0-" + "9" * 5000, "* " * 3000,
    "@every " + "9" * 5000 + "h", "0 9 * * " + ",".join(["mon"] * 3000), "a" * 70000, "{{ .Values.x }}",
    "\u202e\u0000"[:1], "\N{LATIN SMALL LETTER E WITH ACUTE}" * 400, [], {}, [[[[]]]], {"a": {"b": ["c", {"d": 1}]}},
    ["9" * 5000], {"9" * 5000: 1}, "Mars/Base", "../../etc/passwd", "2026-01-01", "12:30", "NaN", "Mon-Fri", "None",
)  # fmt: skip
"""Values that something, somewhere, once took badly."""
RAW = (
    "9" * 5000, "-0x" + "f" * 5000, "0b" + "1" * 5000, "0" * 5000 + "7", "1_" * 3000 + "1", "." + "5" * 5000,
    "1e" + "9" * 5000, ".inf", ".nan", "!!int 1" + "0" * 5000, "!!float 1" + "0" * 5000, "!!binary /w==",
    "!!timestamp 2026-01-01", '"\\ud800"', '"\\x00"', "\x07", "&a [*a]", "*nowhere", "<<: 1", "? {a: b}\n: c",
    "[" * 200, "{" * 200, "%YAML 9.9", "\n---\n", "\n...\n", "\t", "\n" * 3000, "#" * 3000, "- " * 100, "|\n x", ">-9",
    "@", "`", "---\n" * 50,
)  # fmt: skip
"""Texts that are put between the characters of a file."""


def values_of(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every node but the root."""
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [found for key, value in entries for found in ((*path, key), *values_of(value, (*path, key)))]


def altered(document: Any, draw: random.Random) -> Any:
    """The document with a few of its values replaced, removed, doubled, or renamed."""
    for _ in range(draw.randint(1, 4)):
        paths = values_of(document)
        if not paths:
            return document
        *above, last = draw.choice(paths)
        holder = document
        for step in above:
            holder = holder[step]
        match draw.randrange(6):
            case 0 if isinstance(holder, dict):
                del holder[last]
            case 1 if isinstance(holder, dict):
                holder[str(last) + draw.choice("sx ")] = holder.pop(last)
            case 2 if isinstance(holder, list):
                holder.extend([holder[last]] * draw.choice([1, 120]))
            case _:
                holder[last] = deepcopy(draw.choice(NASTY))
    return document


def as_yaml(draw: random.Random) -> tuple[str, bytes]:
    documents = [altered(document, draw) for document in yaml.load_all(draw.choice(SEEDS), Loader=yaml.CSafeLoader)]
    return "file.yaml", yaml.dump_all(documents, Dumper=yaml.CSafeDumper).encode("utf-8", "surrogatepass")


def as_json(draw: random.Random) -> tuple[str, bytes]:
    documents = [altered(document, draw) for document in yaml.load_all(draw.choice(SEEDS), Loader=yaml.CSafeLoader)]
    text = json.dumps(draw.choice(documents))
    if draw.random() < 0.5:
        place = draw.randrange(len(text))
        text = (
            text[:place] + draw.choice(['"\\ud800"', "1" * 5000, "NaN", "[" * 2000, '"\\ud83d\\ude00"']) + text[place:]
        )
    return "file.json", text.encode()


def as_text(draw: random.Random) -> tuple[str, bytes]:
    text = draw.choice(SEEDS)
    for _ in range(draw.randint(1, 5)):
        place = draw.randrange(len(text) + 1)
        colon = text.find(": ", place)
        if colon >= 0 and draw.random() < 0.6:
            end = text.find("\n", colon)
            text = text[: colon + 2] + draw.choice(RAW) + (text[end:] if end >= 0 else "")
        else:
            text = text[:place] + draw.choice(RAW) + text[place + draw.choice([0, 1, 20]) :]
    return "file.yaml", text.encode("utf-8", "surrogatepass")


def as_aliased(draw: random.Random) -> tuple[str, bytes]:
    """Values of all kinds that stand for others: by aliases, in lists, as keys, and merged."""
    text = yaml.dump(altered(deepcopy(draw.choice(DOCUMENTS)), draw), Dumper=yaml.CSafeDumper)
    anchored = draw.choice(
        ["x", "x" * 90_000, "[a, b]", "{a: 1, spec: {}}", "null", "[*z]", "0" * 5000, "{}", "[[[[]]]]"]
    )
    lines = [f"anchor: &z {anchored}", *text.splitlines()]
    for _ in range(draw.randint(1, 30)):
        place = draw.randrange(1, len(lines) + 1)
        before = lines[place - 1]
        indent = before[: len(before) - len(before.lstrip(" -"))].replace("-", " ")
        new = draw.choice(
            ["k§: *z", "<<: *z", "<<: [*z, *z]", "? *z\n{}: 1", "k§: [*z, *z, *z]", "k§: &z *z", "k§: &z {{a: *z}}"]
        )
        key, colon, _ = before.partition(": ")
        if colon and draw.random() < 0.5:
            lines[place - 1] = f"{key}: *z"
        else:
            lines.insert(place, indent + new.replace("§", str(draw.randrange(99))).replace("{}", indent))
    return "file.yaml", "\n".join(lines).encode()


def as_zeros(draw: random.Random) -> tuple[str, bytes]:
    """Numbers that begin with zeros, and nulls for anything."""
    text = draw.choice(SEEDS)

    def longer(match: re.Match[str]) -> str:
        return draw.choice(["0", "0" * 30, "0" * 5000]) + match[0] if draw.random() < 0.3 else match[0]

    def emptied(match: re.Match[str]) -> str:
        nothing = draw.choice(["", "null", "~", "[null]", "{}", "[]", "{null: 1}", '""'])
        return f"{match[1]}{nothing}{match[2]}" if draw.random() < 0.05 else match[0]

    return "file.yaml", re.sub(r"(: )[^,}\]\n]*([,}\]\n])", emptied, re.sub(r"(?<![\w.])\d+", longer, text)).encode()


def as_bytes(draw: random.Random) -> tuple[str, bytes]:
    content = bytearray(draw.choice(SEEDS).encode())
    for _ in range(draw.randint(1, 10)):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return "file.yaml", bytes(content)


KINDS: tuple[Callable[[random.Random], tuple[str, bytes]], ...] = (
    as_yaml, as_yaml, as_json, as_text, as_text, as_aliased, as_zeros, as_bytes,
)  # fmt: skip


def check(seed: int) -> None:
    draw = random.Random(seed)
    path, content = draw.choice(KINDS)(draw)
    declared = read({path: content})
    assert declared == read({path: content})
    local = in_utc(declared, NOW)
    demands, of_buffers = buffer_demands(local.declared, ClusterView(), dialect=draw.choice(list(Dialect)))
    findings = (*declared.findings, *local.findings, *of_buffers, *schedule_findings(declared.schedules, NOW))
    assert declared.documents or findings or not content.strip()
    for finding in findings:
        assert finding.code != "not-read", finding
        assert finding.position is None or 1 <= finding.position.line <= len(re.split(rb"[\r\n]", content)) + 1, finding
        text = f"{finding.message} {finding.hint} {finding.path}"
        assert len(text) < 4000
        text.encode()
    json.dumps([item.manifest for item in declared.manifests], allow_nan=False).encode()
    assert all(len(line) < 5000 for demand in demands for line in demand.explanation)


def check_each(shard: int, inputs: int, check: Callable[[int], None]) -> None:
    """Checks the shard's seeds, or the only one asked for. A failure names its seed."""
    seeds = [int(ONLY)] if ONLY is not None else range(shard, inputs, SHARDS)
    for seed in seeds:
        try:
            check(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: repeat it with HEADROOM_FUZZ_SEED={seed}")
            raise


@pytest.mark.parametrize("shard", range(SHARDS))
def test_whatever_a_repository_holds_is_read(shard: int) -> None:
    check_each(shard, INPUTS, check)
