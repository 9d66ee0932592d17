"""Runs Scrapy's own tests, once as they are and once with bigcrawl's add-on in each crawler, and compares.

    python scripts/scrapy_suite/run.py SOURCE [FILE...]

SOURCE is the unpacked sdist of the installed Scrapy; its `scrapy/` is set aside, so that the installed one is tested.
Status 1 if a test that passes as it is fails with the add-on and is not in `exceptions.txt`, or is there and passes.
What passes as it is is kept in SOURCE, and not run again.

`files.txt` lists the files that make crawlers in their own process, but for those that try one download handler alone,
and `test_addons.py`, which counts add-ons.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

from bigcrawl.redisdb.embedded import EmbeddedServer

HERE = Path(__file__).parent
FILES = HERE / "files.txt"
EXCEPTIONS = HERE / "exceptions.txt"
FILE_S_MAX = 600
TEST_S_MAX = 60
SOMETIMES = "sometimes: "
"""How the reason begins of tests that fail or pass, as it happens."""

AT_ONCE = int(os.environ.get("SCRAPY_SUITE_AT_ONCE", "2"))


def main(source: Path, files: list[str]) -> int:
    """Run both sides; the status."""
    if (source / "scrapy").exists():
        (source / "scrapy").rename(source / "scrapy-set-aside")
    stock, ours = run(source, files or FILES.read_text().split())
    listed = exceptions()
    passed = {test for test, has_passed in stock.items() if has_passed}
    failed = {test for test in passed if not ours.get(test)}
    new = failed - listed.keys()
    mended = {test for test, reason in listed.items() if ours.get(test) and not reason.startswith(SOMETIMES)}
    counts = f"{len(passed):,} tests pass as they are, {len(passed - failed):,} of them with the add-on"
    print(f"{counts}; {len(listed)} exceptions")
    for test in sorted(new):
        print(f"fails with the add-on: {test}")
    for test in sorted(mended):
        print(f"passes, and is an exception: {test}")
    return int(bool(new or mended))


def exceptions() -> dict[str, str]:
    """Each test of the table, and its reason: the line in brackets above it."""
    found, reason = {}, ""
    for line in EXCEPTIONS.read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            found[line.strip()] = reason
    return found


def run(source: Path, files: list[str]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Run each file in a process of its own, as it is and with the add-on: which tests that were not skipped passed."""

    def run_file(file: str) -> tuple[dict[str, bool], dict[str, bool]]:
        stock = source / "stock" / f"{Path(file).stem}.xml"
        if not stock.exists():
            run_side(source, file, stock, {})
        ours = source / "injected" / stock.name
        with tempfile.TemporaryDirectory() as directory:
            server = EmbeddedServer(Path(directory) / "redis")  # crawls on one Redis hold hosts in turn
            injected = {"SCRAPY_SUITE_REDIS": server.start(), "PYTHONPATH": str(HERE)}
            try:
                run_side(source, file, ours, injected, "-p", "inject")
            finally:
                server.leave()
        return results(stock), results(ours)

    sides: tuple[dict[str, bool], dict[str, bool]] = {}, {}
    with ThreadPoolExecutor(AT_ONCE) as beside:
        for found in beside.map(run_file, files):
            for side, tests in zip(sides, found, strict=True):
                side.update(tests)
    return sides


def run_side(source: Path, file: str, result: Path, environment: dict[str, str], *words: str) -> None:
    """Run a file of tests; what they gave is in `result`, and the log beside it."""
    result.parent.mkdir(exist_ok=True)
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", str(TEST_S_MAX)]
    command += ["--reruns", "1", f"--junitxml={result}", *words, file]
    with result.with_suffix(".log").open("w") as log:
        surroundings = {**os.environ, **environment}
        try:
            subprocess.run(
                command, cwd=source, env=surroundings, stdout=log, stderr=log, timeout=FILE_S_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"{file} took too long: {log.name}")


def results(path: Path) -> dict[str, bool]:
    """Whether each test of a file has passed; without those that were skipped."""
    if not path.exists():
        return {}
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 - pytest wrote it
        kinds = {part.tag for part in case}
        if "skipped" not in kinds:
            found[f"{case.get('classname')}.{case.get('name')}"] = not kinds & {"failure", "error"}
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))
