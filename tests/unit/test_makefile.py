"""The commands' own set-up: a crawl waits for no tool that only tests and benchmarks need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.imports import imports_of

PROJECT = Path(__file__).resolve().parents[2]
OF_MAKE = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "VENV", "TESTS", "WORKERS", "PYTEST_ARGS", "PYTHON")
PYTHONS_OWN = {*sys.stdlib_module_names, "compression"}  # the last since Python 3.14


def would_run(target: str, venv: Path, *more: str) -> str:
    """What `make target` would do with that environment, whatever the variables are with which make runs this test."""
    command = ["make", "--dry-run", f"VENV={venv}", target, *more]
    environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True).stdout


def test_crawl_installs_what_it_needs_alone(tmp_path: Path) -> None:
    """The environment of a crawl has the embedded server and what makes it fast, and nothing of the tests."""
    said = would_run("crawl", tmp_path / "venv")
    assert "'.[embedded,fast]'" in said
    assert "[dev]" not in said


@pytest.mark.parametrize("target", ["venv", "test", "test-long", "lint", "bench", "bench-dns", "bench-hostile"])
def test_other_commands_bring_the_rest_once(tmp_path: Path, target: str) -> None:
    """Tests, lint and benchmarks add their tools when they are called, and not again."""
    venv = tmp_path / "venv"
    said = would_run(target, venv)
    assert said.count("--editable") == said.count("--upgrade pip") == said.count("'.[dev]'") == 1
    venv.mkdir()
    for stamp in (".installed-crawl", ".installed"):
        (venv / stamp).touch()
    assert "install" not in would_run(target, venv).replace(str(venv), "").replace("install_system", "")


@pytest.mark.parametrize("target", ["check-system", "test-fault", "site"])
def test_system_checks_bring_browsers_schemas_and_tables(tmp_path: Path, target: str) -> None:
    """No other command does; where it is known before, all is installed by one call."""
    venv = tmp_path / "venv"
    said = would_run(target, venv)
    assert said.index("'.[dev]'") < said.index("'.[system]'")
    assert not {"duckdb", "pyarrow", "scikit-learn", "selenium", "sphinx"} & needed_by("bigcrawl", {"dev"}, set())
    said = would_run("venv", venv, "EXTRAS=dev,system")
    assert said.count("--editable") == said.count("'.[dev,system]'") == 1
    assert f"{venv}/.installed-system" in said


def test_asserts_are_rewritten_once_and_not_by_each_worker(tmp_path: Path) -> None:
    """In a new checkout, before the workers start; a second `make test` starts them at once."""
    venv, done = tmp_path / "venv", tmp_path / "done"
    said = would_run("test", venv, f"REWRITTEN={done}")
    assert said.index("--collect-only") < said.index("--dist")
    venv.mkdir()
    for stamp in (venv / ".installed-crawl", venv / ".installed", done):
        stamp.touch()
    assert "--collect-only" not in would_run("test", venv, f"REWRITTEN={done}")


def temporary(memory: Path, *cgroups: Path, **environment: str) -> str:
    """Where tests would write, if these were the directory in memory, control groups and the list of own ones."""
    command = [PROJECT / "scripts" / "temporary", memory, *cgroups]
    environment = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_tests_write_to_memory_where_there_is_room(tmp_path: Path) -> None:
    """Where there is none, or no such directory, to the usual one; what the user has chosen is kept."""
    assert temporary(tmp_path) in (str(tmp_path), "/tmp")  # noqa: S108 - as the disk has room
    assert temporary(tmp_path / "missing") == "/tmp"  # noqa: S108 - the usual one
    assert temporary(tmp_path, TMPDIR="/chosen") == "/chosen"
    for target in ("test", "test-long", "test-all", "test-scrapy", "mutation"):
        assert "TMPDIR=$(scripts/temporary)" in would_run(target, tmp_path / "venv")


GB = 1 << 30


@pytest.mark.parametrize(
    ("membership", "files", "has_room"),
    [
        ("0::/pod/tests", {"pod/tests/memory.max": "max", "pod/memory.max": 200 * GB}, True),
        ("0::/pod/tests", {"pod/tests/memory.max": "max", "pod/memory.max": 6 * GB}, False),
        ("0::/", {"memory.max": 6 * GB}, False),
        ("0::/", {"memory.max": 200 * GB, "memory.current": 195 * GB}, False),
        (
            "0::/",
            {"memory.max": 200 * GB, "memory.current": 195 * GB, "memory.stat": f"inactive_file {190 * GB}"},
            True,
        ),
        ("5:cpu:/\n4:memory:/job", {"memory/job/memory.limit_in_bytes": 6 * GB}, False),
        ("4:memory:/docker/1", {"memory/memory.limit_in_bytes": 6 * GB}, False),
        ("4:memory:/", {"memory/memory.limit_in_bytes": (1 << 63) - 4096}, True),
        ("0::/", {}, True),
    ],
)
def test_memory_that_a_container_may_not_use_is_no_room(
    tmp_path: Path, membership: str, files: dict[str, object], has_room: bool
) -> None:
    """The smallest limit counts, of version 1 or 2, of the own group or one above it, less what is used and stays."""
    (tmp_path / "own").write_text(f"{membership}\n")
    (tmp_path / "unlimited").write_text("")
    for name, content in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    without = temporary(tmp_path, tmp_path / "groups", tmp_path / "unlimited")
    expected = without if has_room else "/tmp"  # noqa: S108 - the usual one
    assert temporary(tmp_path, tmp_path / "groups", tmp_path / "own") == expected


def test_package_imports_what_a_crawl_installs() -> None:
    """Every import of the package is of Python, or comes with the extras of `make crawl` or the one for a store."""
    there = needed_by("bigcrawl", {"embedded", "fast", "store"}, set())
    brought_by = metadata.packages_distributions()
    roots = {
        root
        for path in sorted((PROJECT / "bigcrawl").rglob("*.py"))
        for root in imported_roots(path.read_text("utf-8"))
        if root not in PYTHONS_OWN and root != "bigcrawl"
    }
    roots -= {"prometheus_client", "py3langid", "pyarrow", "rich"}  # extras, imported where they are asked for
    assert {"scrapy", "redis", "pycurl"} <= roots
    assert {root for root in roots if not {named(name) for name in brought_by.get(root, [])} & there} == set()


def imported_roots(source: str) -> set[str]:
    return {name.partition(".")[0] for name in imports_of(source) if not name.startswith(".")}


def needed_by(distribution: str, extras: set[str], known: set[str]) -> set[str]:
    """The names of all that is installed with a distribution, itself included."""
    known.add(named(distribution))
    for line in metadata.requires(distribution) or []:
        wanted = Requirement(line)
        applies = wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras | {""})
        if applies and named(wanted.name) not in known:
            needed_by(wanted.name, set(wanted.extras), known)
    return known


def named(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
