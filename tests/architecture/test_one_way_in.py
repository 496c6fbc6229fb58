"""The table in docs/architecture.md is true: a copy of the product gets a new one of each kind of thing at the places that it names, and works.

`tests/unit/forge/test_forges.py` adds a forge.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, copy_of_the_product, run


@dataclass(frozen=True, slots=True)
class Addition:
    """row: of the table in docs/architecture.md. edits: in a file, what is written after which line; "" makes the file. program: shows that
    every way to the new thing knows it."""

    row: str
    edits: tuple[tuple[str, str, str], ...]
    program: str


ADDITIONS = {
    "setting": Addition(
        "add a setting",
        (("model/rules.py", "    nodes_per_pool: int = 0\n", "    nodes_per_zone: int = 3\n"),),
        """
from pathlib import Path
from reconciler.model.errors import Misused
from reconciler.settings.load import load_settings

assert load_settings(None, environment={}).caps.nodes_per_zone == 3
assert load_settings(None, environment={"HEADROOM_CAPS_NODES_PER_ZONE": "7"}).caps.nodes_per_zone == 7
Path("a.yaml").write_text("caps: {nodesPerZone: many}")
try:
    load_settings("a.yaml", environment={})
except Misused as error:
    assert error.message == "a.yaml: caps.nodesPerZone is 'many', expected a whole number", error.message
""",
    ),
    "finding": Addition(
        "add a finding",
        (
            ("model/codes.py", "# Buffers.\n", 'LUCKY_NUMBER = _warning("lucky-number")\n'),
            (
                "manifests/capacity_buffer.py",
                "    check_deadline(inspection)\n\n\n",
                (
                    '    if inspection.get("spec", "replicas") == 7:\n'
                    '        inspection.report(codes.LUCKY_NUMBER, ("spec", "replicas"), "7 is lucky", hint="write 8")\n\n\n'
                ),
            ),
        ),
        """
from datetime import UTC, datetime
from reconciler.model.codes import ALL
from reconciler.manifests.repository.declared import read
from reconciler.report.findings import finding_lines, findings_document, sarif_document

text = "apiVersion: autoscaling.x-k8s.io/v1beta1\\nkind: CapacityBuffer\\nmetadata: {name: web}\\n"
text += "spec:\\n  scalableRef: {kind: Deployment, name: web}\\n  replicas: 7\\n"
found = [item for item in read({"web.yaml": text.encode()}).findings if item.code == "lucky-number"]
assert "lucky-number" in {code.name for code in ALL}
lines = finding_lines(found)
assert lines[0] == "  web.yaml:6:3: warning: CapacityBuffer/default/web: 7 is lucky [lucky-number]", lines
assert findings_document(found, datetime.now(UTC))["findings"][0]["hint"] == "write 8"
assert sarif_document(found)["runs"][0]["results"][0]["ruleId"] == "lucky-number"
""",
    ),
    "metric": Addition(
        "add a metric",
        (
            (
                "telemetry/gauges.py",
                "def _plan_gauges(plan: Plan) -> Iterator[GaugeMetricFamily]:\n",
                '    yield _gauge("headroom_notes", "What the last plan notes", len(plan.notes))\n',
            ),
            (
                "telemetry/metrics.py",
                '        self.count_webhook = self._counting("headroom_webhooks", "Webhooks by result", "result")\n',
                '        self.count_door = self._counting("headroom_doors", "Doors by colour", "colour")\n',
            ),
        ),
        """
from datetime import UTC, datetime
from types import SimpleNamespace
from reconciler.model.changes import Plan
from reconciler.telemetry.metrics import MergedMetrics, Metrics

now, metrics = datetime.now(UTC), Metrics()
plan = Plan(None, now, notes=("one", "two"))
metrics.observe(
    SimpleNamespace(plan=plan, change_set=None, tree=None, timings={}, failure=None, settled=True, traces=()), now=now
)
metrics.count_door("red")
served = metrics.exposition()[0].decode().splitlines()
assert "headroom_notes 2.0" in served
assert 'headroom_doors_total{colour="red"} 1.0' in served
assert 'headroom_notes{cluster="east"} 2.0' in MergedMetrics({"east": metrics.registry}).exposition()[0].decode()
""",
    ),
    "command": Addition(
        "add a command",
        (
            ("cli/application.py", "COMMANDS = {\n", '    "greet": ("greet", "Say hello."),\n'),
            (
                "cli/greet.py",
                "",
                (
                    "import click\n\nfrom reconciler.cli.options import options, settings_from\n\n\n"
                    '@click.command("greet")\n@options("path")\n'
                    "def greet_command(**values: object) -> int:\n"
                    '    """Say hello."""\n    click.echo(f"hello {settings_from(values).path}")\n    return 0\n'
                ),
            ),
        ),
        """
from click.testing import CliRunner
from reconciler.cli.application import application

assert "  greet     Say hello." in CliRunner().invoke(application, ["--help"]).output
assert CliRunner().invoke(application, ["greet", "--path", "clusters/east"]).output == "hello clusters/east\\n"
assert "Did you mean 'greet'?" in CliRunner().invoke(application, ["gret"]).output
""",
    ),
    "field of a manifest": Addition(
        "add a field to a manifest",
        (
            (
                "manifests/schemas/capacity_buffer.yaml",
                "    properties:\n",
                "      colour: {type: string, example: red}\n",
            ),
            ("model/buffers.py", "    replicas: int | None = None\n", '    colour: str = ""\n'),
            (
                "manifests/capacity_buffer.py",
                "        pod_template=template,\n",
                '        colour=spec.get("colour", ""),\n',
            ),
        ),
        """
from reconciler.manifests.repository.declared import read

text = "apiVersion: autoscaling.x-k8s.io/v1beta1\\nkind: CapacityBuffer\\nmetadata: {name: web}\\n"
text += "spec: {scalableRef: {kind: Deployment, name: web}, replicas: 2, COLOUR}\\n"
(buffer,) = read({"web.yaml": text.replace("COLOUR", "colour: blue").encode()}).buffers
assert buffer.colour == "blue"
wrong = read({"web.yaml": text.replace("COLOUR", "colour: 7").encode()}).findings
assert "spec.colour must be text, not the number 7" in {item.message for item in wrong}
slip = read({"web.yaml": text.replace("COLOUR", "color: blue").encode()}).doubtful[0].doubts
assert 'did you mean "colour"?' in {item.hint for item in slip}
""",
    ),
}


@pytest.mark.parametrize("kind", ADDITIONS)
def test_what_the_table_names_is_all_that_a_new_one_needs(kind: str, tmp_path: Path) -> None:
    addition = ADDITIONS[kind]
    row = next(
        line
        for line in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {addition.row} |")
    )
    product = copy_of_the_product(tmp_path) / "reconciler"
    for file, after, written in addition.edits:
        path = product / file
        assert f"`{file}`" in row or f"`{file.partition('/')[0]}/" in row or Path(file).name in row, f"{file}: {row}"
        text = path.read_text(encoding="utf-8") if after else ""
        assert text.count(after) or not after, after
        path.write_text(text.replace(after, after + written, 1) if after else written, encoding="utf-8")
    done = run("python", "-c", addition.program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
