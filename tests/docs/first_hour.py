"""The first hour of `docs/commands/init.md` as commands, and a shell that types them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.programs import ended

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "commands" / "init.md"
WITH_A_CLUSTER, WITHOUT_ONE = 0, 1


def first_hour(which: int) -> list[str]:
    """The lines of the block, word for word."""
    section = PAGE.read_text(encoding="utf-8").partition("## The first hour\n")[2].partition("\n## ")[0]
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return blocks[which].splitlines()


def typed(lines: list[str], folder: Path, **environment: str) -> dict[str, tuple[int, str]]:
    """Each line's exit code and output, typed one after the other into one shell, on a machine whose port 8080 may be taken."""
    script = "".join(f"{line}\necho '@@@' $?\n" for line in lines)
    base = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(folder / "none"),
        "HEADROOM_LISTEN": "127.0.0.1:0",
        **{
            f"GIT_{who}_{what}": "test@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        },
    }
    done = ended("bash", "-c", f"exec 2>&1\n{script}", folder=folder, env={**base, **environment})
    done.check_returncode()
    parts = re.split(r"@@@ (\d+)\n", done.stdout)
    return {line: (int(code), output) for line, output, code in zip(lines, parts[::2], parts[1::2], strict=False)}
