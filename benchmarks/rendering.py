"""`make bench-rendering`: what rendering finds, and what it costs, on a web of 1,000 pages that scripts write.

Ten kinds of pages, each a host of its own below 127.0.7.0/24, are crawled without rendering and with it. Printed are
the coverage of each kind, pages a second, CPU and memory of the node and of its browsers for a page published, and what
the servers' logs call impolite or forbidden. Takes Chromium.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.crawl.report import say
from bigcrawl_rendering.processes import memory_of
from tests.support.browsing.rendering import AGENT, browsers_of, rendering
from tests.support.crawling.crawls import Crawl
from tests.support.servers.scripted_web import KINDS, scripted_web

if TYPE_CHECKING:
    from tests.support.servers.scripted_web import ScriptedWeb

LOOK_S: Final = 0.5


class Outcome(NamedTuple):
    coverage: dict[str, float]
    took_s: float
    node_s: float
    browsers_s: float
    node_bytes: int
    browser_bytes: int
    counts: dict[str, int]
    faults: list[str]


def crawl_of(web: ScriptedWeb, directory: Path, mode: str, delay_s: float, tabs: int) -> Outcome:
    settings = rendering(web, BIGCRAWL_RENDER=mode, BIGCRAWL_HOST_DELAY=delay_s, BIGCRAWL_RENDER_TABS=tabs)
    crawl = Crawl(directory, web.seeds, settings, name=mode, cold=True)
    began = time.monotonic()
    process = crawl.start()
    peaks = Peaks(process.pid)
    with peaks:
        status = crawl.wait(7_200)
    took_s = time.monotonic() - began
    log = crawl.log.read_text()
    if status:
        raise SystemExit(log)
    got = {web.bases[each.host] + each.path for each in web.log}
    coverage = {}
    for kind in KINDS:
        expected = {url for url in web.expected() if url.startswith(f"{web.bases[kind]}/")}
        coverage[kind] = len(expected & got) / len(expected)
    counts = {name: int(count) for name, count in re.findall(r"'render/([\w/]+)': (\d+)", log)}
    faults = web.faults(delay_s - 0.01, AGENT)
    return Outcome(coverage, took_s, peaks.node_s, peaks.browsers_s, peaks.node, peaks.browsers, counts, faults)


class Peaks(threading.Thread):
    """Looks at the memory and CPU of a crawl's node, and of its browsers, now and then."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._is_over = threading.Event()
        self._browsers: dict[str, float] = {}
        self.node = self.browsers = 0
        self.node_s = 0.0

    @property
    def browsers_s(self) -> float:
        return sum(self._browsers.values())

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            browsers = browsers_of(self._pid)
            self.browsers = max(self.browsers, sum(memory_of(browser.processes) for browser in browsers))
            for mark, processes in browsers:
                used_s = sum(cpu_s(process.pid) for process in processes)
                self._browsers[mark] = max(self._browsers.get(mark, 0.0), used_s)
            self.node_s = max(self.node_s, cpu_s(self._pid, with_children=False))
            try:
                text = Path(f"/proc/{self._pid}/status").read_text()
            except OSError:
                return
            if found := re.search(r"VmHWM:\s+(\d+)", text):
                self.node = int(found[1]) << 10


def cpu_s(pid: int, *, with_children: bool = True) -> float:
    """Return the CPU that a process has used, with that of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if with_children else 13])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000, help="pages of the web; 1,000")
    parser.add_argument("--delay", type=float, default=0.2, help="delay of hosts in s; 0.2")
    parser.add_argument("--tabs", type=int, default=4, help="pages that are rendered at a time; 4")
    options = parser.parse_args()
    outcomes = {}
    for mode in ("off", "auto"):
        with scripted_web(options.pages // len(KINDS)) as web, tempfile.TemporaryDirectory() as directory:
            outcomes[mode] = crawl_of(web, Path(directory), mode, options.delay, options.tabs)
            say(f"{mode}: {len(web.log):,} requests in {outcomes[mode].took_s:.0f} s")
    say("kind          off   auto")
    for kind in KINDS:
        say(f"{kind:12} " + " ".join(f"{outcome.coverage[kind]:6.3f}" for outcome in outcomes.values()))
    for mode, outcome in outcomes.items():
        share = sum(outcome.coverage.values()) / len(KINDS)
        pages = share * options.pages
        say(f"{mode}: coverage {share:.3f}, {pages / outcome.took_s:.2f} pages/s")
        say(f"  CPU a page: {outcome.node_s / pages:.4f} s in the node, {outcome.browsers_s / pages:.3f} s in browsers")
        say(f"  memory: {outcome.node_bytes >> 20} MiB in the node, {outcome.browser_bytes >> 20} MiB in browsers")
        say(f"  counts: {outcome.counts}")
        say(f"  faults in the servers' logs: {len(outcome.faults)} {outcome.faults[:3]}")


if __name__ == "__main__":
    main()
