"""The web that all sides crawl, on a core of its own, and its log, read as it grows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from bigcrawl_simweb.model.uniform import UniformWeb
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

SEED: Final = 7
SAMPLE_PAGES: Final = 20
_OK = b"200"
_ROBOTS = b"/robots.txt"


def on_core(core: int, *command: str | PathLike[str]) -> list[str | PathLike[str]]:
    """The command, bound to one core with all threads it will have."""
    taskset = shutil.which("taskset")
    if taskset is None:
        raise SystemExit("taskset is missing, with which processes are pinned to cores: apt-get install util-linux")
    return [taskset, "--cpu-list", str(core), *command]


class Counts(NamedTuple):
    """What the origin has served: whole pages, robots.txt files, and everything else (errors, redirects, aborts)."""

    pages: int = 0
    robots: int = 0
    others: int = 0


class LogCounter:
    """Counts the lines of a log that is being written; each line is read once.

    The first line names the columns, behind the format's name and number.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._torn = b""
        self._counts = Counts()
        columns = self._file.readline().rstrip(b"\n").split(b"\t")[1:]
        self._target, self._status = columns.index(b"target"), columns.index(b"status")

    def read(self) -> Counts:
        """The counts so far."""
        *lines, self._torn = (self._torn + self._file.read()).split(b"\n")
        pages, robots, others = self._counts
        for line in lines:
            fields = line.split(b"\t")
            if fields[self._target] == _ROBOTS:
                robots += 1
            elif fields[self._status] == _OK:
                pages += 1
            else:
                others += 1
        self._counts = Counts(pages, robots, others)
        return self._counts

    def close(self) -> None:
        self._file.close()


class Origin:
    """A fresh server of the same web, for one run: the log begins empty.

    Attributes:
        seeds: how many URLs are in `seeds_file`, one a line.
    """

    def __init__(self, directory: Path, *, hosts: int, core: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        log = directory / "access.log"
        options = ["--seed", str(SEED), "--hosts", str(hosts), "--shape", "uniform", "--log", str(log)]
        serve = [sys.executable, "-m", "bigcrawl_simweb", "serve", *options]
        self._process = spawn(on_core(core, *serve), stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        found = re.match(rb"simweb ready: port=(\d+) ", self._process.stdout.readline())
        if found is None:
            raise RuntimeError("the origin does not start; its last words are above")
        self.pid = self._process.pid
        # All roots, and not a page a host: links are then as new to the first pages as to all later ones.
        self._urls = list(UniformWeb(SEED, hosts).menus(int(found[1])))
        self.seeds = len(self._urls)
        self.seeds_file = directory / "seeds.txt"
        self.seeds_file.write_text("".join(f"{url}\n" for url in self._urls))
        self.counter = LogCounter(log)

    def sample(self) -> list[str]:
        """Some of the seeds, from all over them."""
        return self._urls[:: max(1, self.seeds // SAMPLE_PAGES)][:SAMPLE_PAGES]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.counter.close()
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
