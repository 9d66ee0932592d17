"""Which changes of a module do its tests not notice?

Most of a short test run is its start. So it happens once: a process imports what the tests import, except the module
and what imports it in turn, and each change is tried in a fork of it, which imports the rest.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.mutation.forked import Limits, Run, import_all_but, run_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scripts.mutation.changes import Change

# A change may make a loop endless. Its tests may take so many times the CPU seconds of a run without a change.
_CPU_TIMES: Final = 5
_CPU_SECONDS_MORE: Final = 2


class TestsFailError(Exception):
    """The tests fail without any change, so they would notice whatever is changed."""


def survivors(
    tree: Path, module: str, tests: Sequence[str], tried: Sequence[Change], seconds: float
) -> Iterator[Change]:
    """Try changes one after the other, and yield those with which all tests pass.

    This process moves to the tree, and is of no use for anything else afterwards.

    Args:
        tree: root of a copy of the project that no other process uses.
        module: path of the module, from the root.
        tests: paths of its tests, from the root. The first ones run first.
        tried: changes of the module.
        seconds: how long the tests may run, however little they compute, before they count as failed.

    Raises:
        TestsFailError: the tests fail without any change, or there are none.

    Cost: for each change what the tests cost up to the first that fails, and what imports the module.
    """
    _move_to(tree)
    path, output, modules = tree / module, tree / "output.txt", tree / "modules.txt"
    limits = Limits(seconds, seconds)
    # Beside the answer, this run leaves the byte code of all modules, and that of the changed one would be a wrong one.
    _passed(run_tests(tests, output, limits, modules), output)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    import_all_but(module.removesuffix(".py").replace("/", "."), modules.read_text().splitlines())
    original = path.read_text()
    try:
        path.write_text(ast.unparse(ast.parse(original)))
        usual = _passed(run_tests(tests, output, limits), output)
        limits = Limits(_CPU_TIMES * usual.cpu_seconds + _CPU_SECONDS_MORE, seconds)
        for change in tried:
            path.write_text(change.text)
            if run_tests(tests, output, limits).passed:
                yield change
    finally:
        path.write_text(original)


def _move_to(tree: Path) -> None:
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.path.insert(0, str(tree))


def _passed(run: Run, output: Path) -> Run:
    if not run.passed:
        raise TestsFailError(f"the tests fail without any change:\n{output.read_text()[-2000:]}")
    return run
