"""Loops that are kept compiled, whatever became of what was kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import jit, linked


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("length", [0, 20, 400])
def test_a_compiled_loop_that_was_cut_off_is_compiled_again(tmp_path: Path, length: int) -> None:
    source = tmp_path / "adding.py"
    source.write_text("def add(one, other):\n    return one + other\n")
    jitted = jit()
    assert jitted is not None, "numba is one of the dependencies"
    assert jitted(loaded(source).add)(1, 2) == 3
    (kept,) = tmp_path.rglob("*.nbc")
    kept.write_bytes(kept.read_bytes()[:length])

    assert jitted(loaded(source).add)(1, 2) == 3
    assert kept.stat().st_size > 400


def test_only_loops_that_no_cache_has_are_told_to_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "not_cached", [])
    source = tmp_path / "halving.py"
    source.write_text("def halve(number):\n    return number // 2\n")
    jitted = jit()
    assert jitted is not None, "numba is one of the dependencies"
    for _ in range(2):  # the second reads what the first has written
        assert jitted(loaded(source).halve)(8) == 4
        assert kernel.not_cached == ["halve"]


def test_a_loop_is_compiled_again_when_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    called, calling = tmp_path / "called.py", tmp_path / "calling.py"
    calling.write_text("def twice(number):\n    return changed(number) + changed(number)\n")
    answers = []
    # Of different lengths: Python takes its own compiled file for a source of the same second and length.
    for change in ("number + 1", "number + 10"):
        called.write_text(f"def changed(number):\n    return {change}\n")
        loops = linked([(vars(loaded(called)), ["changed"]), (vars(loaded(calling)), ["twice"])])
        assert loops is not None, "numba is one of the dependencies"
        answers.append(loops["twice"](10))
    assert answers == [22, 40]
