"""`make bench-pythons ARGS="python3.12 python3.13"`: CPU a page and pages/s with each Python, in turns with this one.

Each gets an environment in `build/pythons` with what a crawl needs. The code is this tree's, its reader of links in C
included. A round takes half a minute for each.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.crawl.report import aligned, say
from benchmarks.crawl.run import Plan, run_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.crawl.figures import Measurement

ROOT: Final = Path(__file__).parents[1]
HOSTS: Final = 1_000
_HEADS: Final = ("Python", "pages/s", "CPU ms a page", "RSS MB", "CPU to this one's")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-pythons", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pythons", nargs="*", help="commands, such as python3.13")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20, help="measured of each run; default 20")
    options = parser.parse_args()
    pythons = [sys.executable, *map(environment, options.pythons)]
    rounds = [[measured(python, options.seconds) for python in pythons] for _ in range(options.rounds)]
    say(*aligned([_HEADS, *(row(each, rounds, n) for n, each in enumerate(pythons))]))


def environment(command: str) -> str:
    """Return the interpreter of an environment made by this command, with what a crawl needs."""
    found = shutil.which(command)
    if found is None:
        raise SystemExit(f"there is no {command} on PATH")
    where = ROOT / "build" / "pythons" / Path(command).name
    python, stamp = where / "bin" / "python", where / ".installed"
    if not stamp.exists():
        say(f"an environment for {command}, once: {where}")
        subprocess.run([found, "-m", "venv", "--clear", where], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "--prefer-binary", f"{ROOT}[embedded,fast]"], check=True)
        stamp.touch()
    return str(python)


def measured(python: str, seconds: float) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bigcrawl-pythons-") as directory:
        run = run_side("bigcrawl", Plan(HOSTS, seconds, {}, python=python), Path(directory) / "crawl")
    for fault in run.faults:
        raise SystemExit(f"{python}: {fault}")
    return run.measurement


def row(python: str, rounds: Sequence[Sequence[Measurement]], number: int) -> tuple[str, ...]:
    mine = [each[number] for each in rounds]
    ratio = median(each[number].cpu_ms / each[0].cpu_ms for each in rounds)
    return (
        version(python),
        f"{median(each.pages_per_s for each in mine):.0f}",
        f"{median(each.cpu_ms for each in mine):.2f}",
        f"{median(each.rss_bytes for each in mine) / 1e6:.0f}",
        f"{ratio:.3f}",
    )


def version(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
