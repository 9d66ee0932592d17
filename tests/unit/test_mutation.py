"""The command on a small project of its own, with git and pytest as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import scripts.mutation
from tests.support.running.processes import wait_until

MODULE = """
from bigcrawl.least import least

def clipped(number):
    if number > 9:
        number = 9
    return least(number, 9)

def wait(ready):
    while not ready():
        pass

def untested(number):
    return number + 1
"""
TESTS = """
from hypothesis import given, strategies as st
from bigcrawl.user import clip, wait

@given(st.integers(-5, 20))
def test_clip(number):
    assert clip(number) == min(number, 9)

def test_wait():
    wait(lambda: True)
"""
MORE_TESTS = """
from bigcrawl.clipping import untested

def test_untested():
    assert untested(1) == 2
"""
FILES = {
    "bigcrawl/__init__.py": "",
    "bigcrawl/least.py": "least = min\n",
    "bigcrawl/clipping.py": MODULE,
    "bigcrawl/user.py": "from bigcrawl.clipping import clipped as clip, wait\n",
    "tests/unit/test_clipping.py": TESTS,
    "pytest.ini": "[pytest]\npythonpath = .\nfilterwarnings = error\n",
    ".gitignore": "build\n__pycache__\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (own,) = scripts.mutation.__path__
    shutil.copytree(own, tmp_path / "scripts" / "mutation", ignore=shutil.ignore_patterns("__pycache__"))
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(project: Path, *arguments: str) -> None:
    who = ["-c", "user.name=tester", "-c", "user.email=tester@example.com"]
    subprocess.run(["git", *who, *arguments], cwd=project, check=True)


def mutated(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.mutation", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def listed(project: Path, tree: str = "working-tree") -> list[str]:
    return (project / "build" / "mutation" / tree / "bigcrawl.clipping.py.txt").read_text().splitlines()


@pytest.mark.long("modules and tests of a commit are tried in the same way")
def test_what_no_test_notices_is_listed(project: Path) -> None:
    """Changes reach a module through its users. A loop without end is noticed, and the working tree stays as it is.

    When there are more tests, only what was listed is tried again, in whatever lines it stands now.
    """
    done = mutated(project, "bigcrawl/clipping.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "bigcrawl/clipping.py: 12 changes, 8 not noticed: build/mutation/working-tree/bigcrawl.clipping.py.txt\n"
    )
    assert listed(project) == [
        "bigcrawl/clipping.py:5: 9  ->  10  in  if number > 9:",
        "bigcrawl/clipping.py:5: 9  ->  8  in  if number > 9:",
        "bigcrawl/clipping.py:5: number > 9  ->  number >= 9  in  if number > 9:",
        "bigcrawl/clipping.py:6: 9  ->  10  in  number = 9",
        "bigcrawl/clipping.py:7: 9  ->  10  in  return least(number, 9)",
        "bigcrawl/clipping.py:14: 1  ->  0  in  return number + 1",
        "bigcrawl/clipping.py:14: 1  ->  2  in  return number + 1",
        "bigcrawl/clipping.py:14: number + 1  ->  number - 1  in  return number + 1",
    ]
    assert (project / "bigcrawl/clipping.py").read_text() == MODULE

    (project / "tests/unit/test_clipping.py").write_text(TESTS + MORE_TESTS)
    (project / "bigcrawl/clipping.py").write_text("# A line more.\n" + MODULE)
    done = mutated(project, "--again", "bigcrawl/clipping.py")
    assert done.stdout.startswith("bigcrawl/clipping.py: 8 changes, 5 not noticed"), done.stderr
    assert listed(project)[0].startswith("bigcrawl/clipping.py:6: ")


@pytest.mark.long("tries two modules of a commit; one part at a time is tried here")
def test_modules_and_tests_of_a_commit_are_tried(project: Path) -> None:
    """`--commit` takes them from there, whatever the working tree has become."""
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "All")
    (project / "bigcrawl/clipping.py").write_text("def clipped(: pass")
    (project / "tests/unit/test_clipping.py").unlink()
    done = mutated(project, "--commit", "HEAD", "--jobs", "1", "bigcrawl/clipping.py:tests/unit")
    assert done.returncode == 0, done.stderr
    assert len(listed(project, "HEAD")) == 8


@pytest.mark.parametrize(
    "tests",
    ["def test_it(): assert False", pytest.param("", marks=pytest.mark.long("no test at all, for one that fails"))],
)
def test_tests_that_fail_anyway_say_nothing(project: Path, tests: str) -> None:
    """They would notice whatever is changed. A file without tests is no better."""
    (project / "tests/unit/test_clipping.py").write_text(tests)
    done = mutated(project, "--jobs", "1", "bigcrawl/clipping.py")
    assert done.returncode == 1
    assert "bigcrawl/clipping.py: the tests fail without any change" in done.stderr


@pytest.mark.long("two runs of pytest; one that fails is asked here")
def test_a_part_that_is_killed_is_said_and_leaves_no_process(project: Path) -> None:
    """The other part ends as usual. The tests that the killed one was running are killed, too, though they hang."""
    killer = """
import os, pathlib, signal

def test_it():
    tree = pathlib.Path.cwd()
    if tree.name == "tree1":
        (tree.parent / "run.pid").write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
"""
    (project / "tests/unit/test_clipping.py").write_text(killer)
    done = mutated(project, "bigcrawl/clipping.py")
    work = project / "build" / "mutation" / "working-tree"
    assert done.returncode == 1
    assert done.stderr == (
        f"bigcrawl/clipping.py: the process that worked in {work / 'tree1'} ended with status -9; run it again\n"
    )
    run = Path("/proc", (work / "run.pid").read_text(), "stat")
    wait_until(lambda: not run.exists() or run.read_text().split()[2] == "Z", "the run's end")


@pytest.mark.parametrize("argument", ["bigcrawl/lost.py", "bigcrawl/least.py", "bigcrawl/clipping.py:tests/lost.py"])
def test_a_missing_file_is_named_at_once(project: Path, argument: str) -> None:
    """A wrong name of a module or of its tests is said with the remedy, before anything is tried."""
    done = mutated(project, argument)
    assert done.returncode == 2
    assert "say MODULE:TESTS if a module's tests are elsewhere" in done.stderr
