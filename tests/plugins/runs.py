"""Runs of a plug-in's project on one side, to the end or killed where a request arrives, and begun again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.integration.scrapy_compat.site import Hit, Site
from tests.integration.stock.test_stock import ADDED, COMMON
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PYTHON: Final = os.environ.get("BIGCRAWL_PLUGINS_PYTHON")
REPOSITORY: Final = Path(__file__).parents[2]
RUN_S_MAX: Final = 500
LINES: Final = {"tests.plugins.base.ItemLines": 2}


class WatchedSite(Site):
    """A site that kills a process when a path is asked for the nth time, before it answers."""

    def __init__(self, net: str) -> None:
        super().__init__(net)
        self._victim: subprocess.Popen[bytes] | None = None
        self._path, self._number = "", 0
        self._armed = threading.Lock()

    def kill_at(self, victim: subprocess.Popen[bytes], path: str, number: int) -> None:
        """Kill the process at that hit, hits before this call included."""
        with self._armed:
            self._victim, self._path, self._number = victim, path, number

    def note(self, hit: Hit) -> None:
        super().note(hit)
        with self._armed:
            if self._victim is not None and self.paths().count(self._path) >= self._number:
                os.kill(self._victim.pid, signal.SIGKILL)
                self._victim.wait()
                self._victim = None


@dataclass(frozen=True)
class Run:
    """What the last process did, the items of all, and what all wrote to the log."""

    items: list[str]
    told: dict[str, Any]
    log: str

    @property
    def stats(self) -> Mapping[str, Any]:
        return self.told["stats"]


@dataclass
class Side:
    """A project in a directory of its own.

    Args:
        kills: paths, and the number of the request for each at which the process dies.
    """

    site: WatchedSite
    directory: Path
    project: str
    ours: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kills: Sequence[tuple[str, int]] = ()

    def run(self) -> Run:
        self.directory.mkdir(exist_ok=True)
        lines, log = self.directory / "items.jsonl", self.directory / "log"
        for path, number in self.kills:
            process = self._start(lines, log)
            self.site.kill_at(process, path, number)
            assert process.wait(RUN_S_MAX) == -signal.SIGKILL, log.read_text()
        assert self._start(lines, log).wait(RUN_S_MAX) == 0, log.read_text()
        [told] = json.loads(self.named((self.directory / "told.json").read_text()))
        assert told["reason"] == "finished", log.read_text()
        return Run(sorted(self.named(lines.read_text()).splitlines()), told, self.named(log.read_text()))

    def _start(self, lines: Path, log: Path) -> subprocess.Popen[bytes]:
        order = {
            "project": self.project,
            "runner": "AsyncCrawlerProcess",
            "common": {**COMMON, "RETRY_TIMES": 1, "EXTENSIONS": {**COMMON["EXTENSIONS"], **LINES}},
            "ours": dict(self.ours),
            "settings": {"ITEM_LINES": str(lines), **self.settings},
            "arguments": {"origins": self.site.origins, "refusing": self.site.refusing, **self.arguments},
            "told": str(self.directory / "told.json"),
        }
        words = [str(PYTHON), "-m", "tests.plugins.side", json.dumps(order)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with log.open("a") as out:
            return spawn(words, cwd=self.directory, env=environment, stdout=out, stderr=subprocess.STDOUT)

    def named(self, text: str) -> str:
        """The text with names for the places of the site."""
        for number, origin in enumerate([*self.site.origins, self.site.refusing]):
            text = text.replace(origin, f"http://site{number}")
        return text


def all_of(*sides: Side) -> list[Run]:
    """Run them side by side."""
    with ThreadPoolExecutor(len(sides)) as beside:
        return list(beside.map(Side.run, sides))


def with_bigcrawl(redis_url: str) -> dict[str, Any]:
    """What a project that crawls this machine sets to add bigcrawl."""
    return {**ADDED, "BIGCRAWL_REDIS_URL": redis_url}
