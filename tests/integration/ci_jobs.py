"""The jobs of CI files, run line by line as a forge's runner does: conditions, expressions, environment, shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.headroom_command import path_with_headroom

ROOT = Path(__file__).resolve().parents[2]
_EXPRESSION = re.compile(r"\$\{\{(.+?)\}\}")


@dataclass
class Job:
    """folder: the job's own checkout. context: what expressions can name. failed: as the forge would show it. kept: artifacts. log: all output."""

    folder: Path
    context: dict[str, Any]
    environment: Mapping[str, str]
    failed: bool = False
    log: str = ""
    kept: list[Path] = field(default_factory=list)

    def steps(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Those of a workflow or a composite action. Of actions by others only the upload of an artifact is carried out."""
        for step in steps:
            condition = str(step.get("if", "true"))
            if (self.failed and "always()" not in condition) or not self._value(condition):
                continue
            if "upload-artifact" in step.get("uses", ""):
                self._keep(self.folder / self._filled(step["with"]["path"]), self._filled(step["with"]["name"]))
            elif "run" in step:
                own = {name: self._filled(value) for name, value in step.get("env", {}).items()}
                shell = ("-eo", "pipefail") if step.get("shell") == "bash" else ("-e",)
                self.script(step["run"], own, shell=shell)
                self.context["steps"][step.get("id", "")] = {"outputs": dict(self._outputs())}

    def script(self, script: str, environment: Mapping[str, str], *, shell: Sequence[str] = ("-e",)) -> None:
        """One shell, which ends at its first failure. A placeholder of `headroom init` has the embedded cluster."""
        script = script.replace(" --path clusters/CLUSTER", "").replace("PLANNED_ON", "embedded")
        path = os.pathsep.join((path_with_headroom(), str(Path(sys.executable).parent)))
        done = subprocess.run(
            ["bash", *shell, "-c", script],
            cwd=self.folder,
            env={"PATH": path, "HOME": str(self.folder.parent), **self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        self.log += done.stdout + done.stderr
        self.failed = self.failed or done.returncode != 0

    def _keep(self, path: Path, name: str) -> None:
        assert re.fullmatch(r'[^"<>|*?:\r\n\\/]+', name), f"no name of an artifact: {name!r}"
        self.kept += [path] if path.exists() else []

    def _outputs(self) -> Iterator[tuple[str, str]]:
        file = Path(self.environment["GITHUB_OUTPUT"])
        for line in file.read_text().splitlines() if file.exists() else ():
            name, _, value = line.partition("=")
            yield name, value

    def _filled(self, text: object) -> str:
        return _EXPRESSION.sub(lambda found: str(self._value(found[1])), str(text))

    def _value(self, expression: str) -> object:
        """`a == b && 'x' || 'y'`: what the files of headroom have of GitHub's expressions."""
        value: object = ""
        for either in expression.removeprefix("${{").removesuffix("}}").split("||"):
            for part in either.split("&&"):
                left, sign, right = (
                    (word.strip() for word in re.split(r"(==|!=)", part)) if "=" in part else (part.strip(), "", "")
                )
                value = self._atom(left) if not sign else (self._atom(left) == self._atom(right)) is (sign == "==")
                if not value:
                    break
            if value:
                return value
        return value

    def _atom(self, word: str) -> object:
        if word.startswith("'"):
            return word.strip("'")
        if word in {"always()", "true"}:
            return True
        value: Any = self.context
        for name in word.split("."):
            value = value.get(name, "") if isinstance(value, dict) else ""
        return value
