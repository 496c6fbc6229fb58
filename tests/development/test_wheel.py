"""What is installed is whole: the wheel has the templates, schemas, settings and examples that the code reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_has_every_data_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, f"--wheel-dir={tmp_path}", str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {
        *(f"reconciler/_data/{path.relative_to(ROOT)}" for path in (ROOT / "templates").glob("*.j2")),
        *(f"reconciler/_data/{path.relative_to(ROOT)}" for path in (ROOT / "config").rglob("*.yaml")),
        *(str(path.relative_to(ROOT)) for path in (ROOT / "reconciler").rglob("*.yaml")),
        *(str(path.relative_to(ROOT)) for path in (ROOT / "reconciler").rglob("*.json")),
        "reconciler/_data/examples-repo/README.md",
        "reconciler/_data/examples-repo/.sourceignore",
        "reconciler/_data/config/scaffold/every/.sourceignore",
        "reconciler/py.typed",
    }
    assert len(wanted) > 30
    assert wanted - names == set()
    assert not any(name.startswith("tests/") for name in names)
