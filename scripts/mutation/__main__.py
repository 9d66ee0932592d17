"""`make mutation MODULES="..."`, or `python -m scripts.mutation MODULE[:TESTS]...`; see CONTRIBUTING.md.

Works on copies below build/mutation, where the list of each module stays; the working tree is never changed.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.mutation.changes import Change, changes
from scripts.mutation.forked import die_with
from scripts.mutation.trials import survivors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / "build" / "mutation"
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Subject:
    """A module, and the tests that should notice its changes; paths from the root of the project."""

    module: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of all modules: where lists stay, copies to work on, seconds of tests that hang, the last list?"""

    work: Path
    trees: Sequence[Path]
    seconds: float
    again: bool


def subject(argument: str) -> Subject:
    """`MODULE:TESTS`, with commas between the tests; `tests/unit/url/test_key.py` for `bigcrawl/url/key.py` alone."""
    module, _, tests = argument.partition(":")
    path = Path(module)
    usual = Path("tests", "unit", *path.parent.parts[1:], f"test_{path.name}")
    return Subject(module, tuple(tests.split(",")) if tests else (str(usual),))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutation", description=__doc__)
    parser.add_argument("subjects", nargs="+", type=subject, metavar="MODULE[:TESTS]", help="a file, and its tests")
    parser.add_argument("--commit", help="the modules and tests of this commit, instead of those of the working tree")
    parser.add_argument("--jobs", type=int, default=2, help="changes tried at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=300, help="of tests that hang (%(default)s)")
    parser.add_argument("--again", action="store_true", help="only the changes of the last list: are they noticed now?")
    options = parser.parse_args(arguments)
    work = WORK / (options.commit or "working-tree")
    trees = [work / f"tree{number}" for number in range(options.jobs)]
    copy_project(options.commit, trees)
    for chosen in options.subjects:
        missing = [path for path in (chosen.module, *chosen.tests) if not (trees[0] / path).exists()]
        if missing:
            parser.error(f"there is no {missing[0]}: say MODULE:TESTS if a module's tests are elsewhere")
    asked = Asked(work, trees, options.seconds, options.again)
    failed = [chosen.module for chosen in options.subjects if not report(chosen, asked)]
    return 1 if failed else 0


def copy_project(commit: str | None, trees: Sequence[Path]) -> None:
    """Make each tree a copy of a commit, or of the working tree with what is not committed."""
    for tree in trees:
        if tree.exists():
            shutil.rmtree(tree)
        tree.mkdir(parents=True)
        if commit is None:
            for name in _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0"):
                if name and (ROOT / name).is_file():  # a file may be deleted, and its deletion not committed
                    (tree / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, tree / name)
        else:
            with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
                archive.extractall(tree, filter="data")


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def report(chosen: Subject, asked: Asked) -> bool:
    """Try all changes of a module, a part of them in each tree, and list the survivors. False: its tests fail."""
    tried = changes((asked.trees[0] / chosen.module).read_text())
    listed = asked.work / f"{chosen.module.replace('/', '.')}.txt"
    if asked.again:
        last = {_without_number(line) for line in listed.read_text().splitlines()}
        tried = [change for change in tried if _without_number(_shown(chosen, change)) in last]
    parts = [
        _Part(chosen, tree, tried[number :: len(asked.trees)], asked.seconds) for number, tree in enumerate(asked.trees)
    ]
    heard = [part.answer() for part in parts]
    survived: list[Change] = []
    for answer in heard:
        if isinstance(answer, str):
            print(f"{chosen.module}: {answer}", file=sys.stderr)
            return False
        survived += answer
    survived.sort(key=lambda change: (change.number, change.before, change.after))
    listed.write_text("".join(f"{_shown(chosen, change)}\n" for change in survived))
    print(f"{chosen.module}: {len(tried)} changes, {len(survived)} not noticed: {listed.relative_to(ROOT)}", flush=True)
    return True


def _shown(chosen: Subject, change: Change) -> str:
    return f"{chosen.module}:{change}"


def _without_number(shown: str) -> str:
    """A change in whatever line it stands: what was mended may have moved it."""
    return re.sub(r":\d+: ", ": ", shown, count=1)


class _Part:
    """A process that tries a part of a module's changes in a tree. It ends at the latest when this process does."""

    def __init__(self, chosen: Subject, tree: Path, tried: Sequence[Change], seconds: float) -> None:
        context = multiprocessing.get_context("fork")
        self._tree = tree
        self._answers, answers = context.Pipe(duplex=False)
        self._process: ForkProcess = context.Process(
            target=_try_part, args=(os.getpid(), answers, chosen, tree, tried, seconds)
        )
        self._process.start()
        answers.close()  # so that the end of the process is the end of the pipe, if it is killed while it answers

    def answer(self) -> list[Change] | str:
        """Wait for its survivors, or for why there are none: an error, or that it was killed."""
        # Neither pipe nor sentinel tells of the end of a process while forks of it have their other ends.
        while not self._answers.poll(_POLL_SECONDS) and self._process.is_alive():
            pass
        try:
            answer: list[Change] | str | None = self._answers.recv() if self._answers.poll() else None
        except EOFError:
            answer = None
        self._process.join()
        if answer is not None:
            return answer
        return f"the process that worked in {self._tree} ended with status {self._process.exitcode}; run it again"


def _try_part(
    parent: int, answers: Connection, chosen: Subject, tree: Path, tried: Sequence[Change], seconds: float
) -> None:
    die_with(parent)
    try:
        answers.send(list(survivors(tree, chosen.module, chosen.tests, tried, seconds)))
    except Exception as error:  # noqa: BLE001 - whatever it was, the other process waits for an answer
        answers.send(f"{error}")


if __name__ == "__main__":
    sys.exit(main())
