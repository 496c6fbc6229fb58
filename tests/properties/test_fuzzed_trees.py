"""Git trees made at random, past git's own checks, whole and damaged: each is read or is a stall with a reason.

HEADROOM_SCENARIOS=10000 makes as many of them; each has a seed, which alone makes it again.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Stalled
from reconciler.source.revision import LocalRevision
from reconciler.source.selection import SUFFIXES, Scope, TreeLimits
from tests.fakes.clock import ManualClock

SCENARIOS = int(os.environ.get("HEADROOM_SCENARIOS", "100"))
BATCH = 20
LIMITS = TreeLimits(entries=2_000, files=50, file_bytes=500, total_bytes=2_000)
NAMES = (
    b"a", b"b", b"a.yaml", b"b.yml", b"c.json", b"d.j2", b".sourceignore", b".git", b"..", b".", b"a/b.yaml", b"\xff.yaml", b"x\ny.yaml",
    b"long" * 80 + b".yaml", b"templates", b" ", b"-rf.yaml", "ü.yaml".encode(), b"\x1b[31m.yaml", b"clusters",
)  # fmt: skip
TARGETS = (
    b"..",
    b"../..",
    b"a",
    b"b/a.yaml",
    b"/etc/passwd",
    b".git/config",
    b"a/../b",
    b".",
    b"",
    b"a\0b",
    b"x" * 5_000,
    b"\xff",
    b"../" * 50,
)
CONTENTS = (
    b"a: 1\n",
    b"",
    b"\xff",
    b"x" * 501,
    b"version https://git-lfs.github.com/spec/v1\n",
    b"*a*a*a*a*b\n!a\n[",
    b"/**\n",
    b"\0" * 9,
)
MODES = (b"100644", b"100755", b"40000", b"120000", b"160000", b"100664", b"0", b"777777", b"040000", b"junk")


class Objects:
    """Writes loose objects as they are asked for."""

    def __init__(self, git_dir: Path) -> None:
        self._folder = git_dir / "objects"

    def write(self, kind: str, body: bytes) -> str:
        data = f"{kind} {len(body)}\0".encode() + body
        name = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        path = self._folder / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(data, 1))
        return name

    def tree(self, draw: random.Random, known: list[str], depth: int = 0) -> str:
        entries = []
        for _ in range(draw.randint(0, 6)):
            mode = draw.choices(MODES, weights=(8, 1, 8, 5, 1, 1, 1, 1, 1, 1))[0]
            if known and draw.random() < 0.1:
                found = draw.choice((*known, "0" * 40))
            elif mode.endswith(b"40000") and depth < 6:
                found = self.tree(draw, known, depth + 1)
            else:
                found = self.write("blob", draw.choice(TARGETS if mode == b"120000" else CONTENTS))
            known.append(found)
            entries.append(mode + b" " + draw.choice(NAMES) + b"\0" + bytes.fromhex(found))
        return self.write("tree", b"".join(draw.sample(entries, len(entries))))

    def commit(self, tree: str) -> str:
        person = "Anna <anna@example.com> 1790000000 +0000"
        return self.write("commit", f"tree {tree}\nauthor {person}\ncommitter {person}\n\nChange\n".encode())

    def damage(self, draw: random.Random) -> None:
        """One object is cut off, spoiled, emptied or gone."""
        path = draw.choice(sorted(path for path in self._folder.rglob("*") if path.is_file()))
        data = path.read_bytes()
        at = draw.randrange(len(data))
        match draw.randrange(4):
            case 0:
                path.write_bytes(data[:at])
            case 1:
                path.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
            case 2:
                path.write_bytes(b"")
            case _:
                path.unlink()


def outcome(source: LocalRevision) -> SourceTree | Stalled:
    try:
        return source.read()
    except Stalled as stall:
        return stall


@pytest.mark.parametrize("batch", range(0, SCENARIOS, BATCH))
def test_a_tree_is_read_or_is_a_stall_with_a_reason(batch: int, tmp_path: Path) -> None:
    read = 0
    for seed in range(batch, min(SCENARIOS, batch + BATCH)):
        draw = random.Random(seed)
        folder = tmp_path / str(seed)
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
        objects = Objects(folder)
        commit = objects.commit(objects.tree(draw, []))
        (folder / "refs" / "heads" / "main").write_text(f"{commit}\n")
        if draw.random() < 0.3:
            objects.damage(draw)
        source = LocalRevision(
            folder, "main", Scope(draw.choice(("", "a", "clusters")), "templates"), clock=ManualClock(),
            limits=LIMITS,
        )  # fmt: skip
        tree = outcome(source)
        shutil.rmtree(folder)
        if isinstance(tree, Stalled):
            assert tree.reason, seed
            assert tree.message.isprintable(), seed
            continue
        read += 1
        assert sum(map(len, tree.files.values())) <= LIMITS.total_bytes, seed
        for path in (*tree.files, *(path for path, _ in tree.skipped)):
            path.encode()
            assert not {"..", ".git"} & set(path.split("/")), seed
        assert all(path.endswith(SUFFIXES) for path in tree.files), seed
    assert read
