"""The README is for someone who has two minutes: commands that exist, links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.cli.application import COMMANDS
from tests.docs.first_hour import WITH_A_CLUSTER, first_hour
from tests.unit.telemetry.test_alerts import served

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_is_named_and_every_link_leads_somewhere() -> None:
    for command in COMMANDS:
        assert f"docs/commands/{command}.md" in README
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_the_make_targets_that_it_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make ([a-z-]+)", README))
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_setting_up_compiles_the_loops_so_that_the_demo_does_not() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\n.venv/.installed:")[2].partition("\n\n")[0]
    assert "-m reconciler.placement.precompile" in recipe


def test_installing_comes_before_what_needs_it() -> None:
    lines = [line.strip() for line in README.splitlines() if line.startswith("    ")]
    first_use = next(index for index, line in enumerate(lines) if line.startswith("headroom "))
    assert any(line.startswith("pipx install") for line in lines[:first_use])


def test_what_is_typed_on_a_cluster_is_what_the_first_hour_types() -> None:
    """tests/e2e types the first hour on a real control plane, to the full buffer."""
    section = README.partition("## On your cluster\n")[2].partition("\n## ")[0]
    lines = [line.partition("  #")[0].strip() for line in section.splitlines() if line.startswith("    ")]
    typed = [line for line in lines if line.startswith("headroom")]
    assert typed[-1] == "headroom run --path clusters/production --until-settled"
    assert [line for line in first_hour(WITH_A_CLUSTER) if line in typed] == typed


# The page about metrics names every metric that the daemon serves, and no other.

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
PARTS = ("_bucket", "_count", "_sum")


def test_every_metric_is_on_its_page() -> None:
    named = set(re.findall(r"`((?:headroom|karpenter)_[a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    exist = set()
    for name in served():
        part = next((part for part in PARTS if name.endswith(part)), "")
        exist.add(name.removesuffix(part))
    assert exist - named == set()
    assert named - exist == {"karpenter_scheduled_capacity"}, "which stands in the daemon's own collector"
