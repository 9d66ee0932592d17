"""`make bench-paired ARGS=COMMIT`: what a page costs today, and what it cost at an earlier commit, at the same time.

Where other machines share the processor, the same code costs a third more in one minute than in the next. Both sides
therefore crawl the same simulated web at the same moment, so that whatever slows one slows the other; only their ratio
says anything, and their pages/s nothing. The side that starts first stays ahead, which makes its pages 3 or 4 % cheaper
on a busy machine. So the sides take turns, and an even number of rounds is fair. Two minutes a round. The earlier
commit runs from a worktree in `build/`, with this environment's packages.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
MODULES: Final = ("benchmarks.crawl", "tests.benchmarks.crawl")
"""Where `make bench` stands, today and at older commits."""


def main() -> int:
    """Print the CPU a page of both sides in each round, and the median of their ratios. Status 1 if it is too high."""
    parser = argparse.ArgumentParser("python -m benchmarks.paired", description=__doc__)
    add = parser.add_argument
    add("commit", help="what today's code is compared with")
    add("--now", metavar="COMMIT", help="compare this commit with it, instead of today's code")
    add("--rounds", type=int, default=6)
    add("--seconds", type=float, default=40, help="measured of each round; default 40")
    add("--most", type=float, default=2, help="per cent that a page may cost more; default 2")
    options = parser.parse_args()

    ratios = []
    with (
        tempfile.TemporaryDirectory(prefix="bigcrawl-paired-") as directory,
        worktree(options.commit) as earlier,
        worktree(options.now) if options.now else nullcontext(ROOT) as today,
    ):
        compile_reader(ROOT)
        say("round  then ms/page  now ms/page  now/then")
        for number in range(1, options.rounds + 1):
            trees = (earlier, today) if number % 2 else (today, earlier)
            costs = dict(zip(trees, measure(trees, options.seconds, Path(directory)), strict=True))
            then, now = costs[earlier], costs[today]
            ratios.append(now / then)
            say(f"{number:<5}  {then:12.3f}  {now:11.3f}  {now / then:8.3f}")
    dearer = 100 * (statistics.median(ratios) - 1)
    least, most = (100 * (ratio - 1) for ratio in (min(ratios), max(ratios)))
    say(f"CPU a page of crawler and Redis: {dearer:+.1f} % ({least:+.1f} to {most:+.1f})")
    return int(dearer > options.most)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """The files of a commit, for as long as they are needed."""
    with tempfile.TemporaryDirectory(prefix="paired-", dir=_build()) as parent:
        path = Path(parent) / "tree"
        try:
            _git("worktree", "add", "--quiet", "--detach", str(path), commit)
            compile_reader(path)
            yield path
        finally:
            _git("worktree", "remove", "--force", str(path), check=False)


def compile_reader(tree: Path) -> None:
    """Compile the reader of links, if the tree has one. It is in no commit, and a side without it is slower."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)


def measure(trees: tuple[Path, Path], seconds: float, directory: Path) -> tuple[float, float]:
    """Crawl from both trees at once, the first of them ahead; the CPU of crawler and Redis, ms a page, of each.

    Raises:
        SystemExit: a side failed; its output has been printed.
    """
    started = [_start(tree, seconds, directory / str(side)) for side, tree in enumerate(trees)]
    outputs = [process.communicate()[0] for process in started]
    for process, output in zip(started, outputs, strict=True):
        if process.returncode:
            sys.stderr.write(output)
            raise SystemExit(f"a side ended with status {process.returncode}")
    first, second = (_cpu_ms(directory / str(side)) for side in range(len(trees)))
    return first, second


def _start(tree: Path, seconds: float, result: Path) -> subprocess.Popen[str]:
    module = next((name for name in MODULES if (tree / name.replace(".", "/")).is_dir()), None)
    if module is None:
        raise SystemExit(f"that commit has no {' nor '.join(MODULES)}")
    command = [sys.executable, "-m", module, "--sides", "bigcrawl", "--rounds", "1"]
    return subprocess.Popen(
        [*command, "--seconds", str(seconds), "--json", str(result)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _cpu_ms(result: Path) -> float:
    (run,) = json.loads(result.read_text())["runs"]["bigcrawl"]
    return float(run["cpu_ms"])


def _build() -> Path:
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    return build


def _git(*arguments: str, check: bool = True) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=check)


if __name__ == "__main__":
    sys.exit(main())
