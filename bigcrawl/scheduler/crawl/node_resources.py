"""The capacity that a node takes from its machine, with BIGCRAWL_CAPACITY_FROM.

    disk        free bytes where pages are stored, measured again every ten minutes    1 = 100 GB
    bandwidth   speed of the interface of the default route, once                      1 = 1 Gbit/s
    speed       pages whose links this process reads in a second of one core, once     1 = 2,000 pages/s

Only the ratios between nodes count. What a node owns has no influence on what it measures, so shares do not swing.

Source: UbiCrawler §3, §4.3 (an agent's capacity is its mass storage and bandwidth).
"""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.links.page import extract_links
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import CrawlConfig

LEAST: Final = 0.01
MOST: Final = 10_000.0
AGAIN_MS: Final = 600_000
STEP: Final = 0.1
"""The part by which a measurement differs from the last one before partitions move."""

_BYTES_OF_ONE: Final = 100e9
_MBITS_OF_ONE: Final = 1_000
_PAGES_OF_ONE: Final = 2_000
_PAGES: Final = 20  # some ten milliseconds
_TRIES: Final = 5  # the best counts: others were interrupted


class NodeResources:
    def __init__(self, measure: Callable[[], float], *, is_repeated: bool) -> None:
        self._measure = measure
        self._is_repeated = is_repeated
        self._measured_ms: int | None = None
        self._pending: asyncio.Future[float] | None = None
        self.value = 1.0

    def __repr__(self) -> str:
        return f"<NodeResources {self.value:g}>"

    @classmethod
    def of_config(cls, crawl: CrawlConfig, root: Path = Path("/")) -> NodeResources:
        directory = crawl.warc_dir or crawl.state_dir
        if crawl.capacity_from == "disk":
            return cls(lambda: free_bytes(directory) / _BYTES_OF_ONE, is_repeated=True)
        if crawl.capacity_from == "bandwidth":
            return cls(lambda: link_mbits(root) / _MBITS_OF_ONE, is_repeated=False)
        return cls(lambda: pages_per_s() / _PAGES_OF_ONE, is_repeated=False)

    def begin(self) -> None:
        """Measure for the first time. Raises ConfigError or OSError if that is impossible."""
        self.value = _bounded(self._measure())

    def refresh(self, now_ms: int) -> None:
        """Measure again in a thread if due; a hung disk delays nothing and leaves the old value."""
        if self._pending is not None and self._pending.done():
            if self._pending.exception() is None and self.has_changed(value := _bounded(self._pending.result())):
                self.value = value
            self._pending = None
        if self._measured_ms is None:
            self._measured_ms = now_ms
        if self._is_repeated and self._pending is None and now_ms - self._measured_ms >= AGAIN_MS:
            self._measured_ms = now_ms
            self._pending = asyncio.get_running_loop().run_in_executor(None, self._measure)

    def has_changed(self, value: float) -> bool:
        return abs(value - self.value) > STEP * self.value


def free_bytes(directory: Path) -> float:
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    return shutil.disk_usage(directory).free


def link_mbits(root: Path) -> float:
    try:
        routes = [line.split() for line in (root / "proc/net/route").read_text("ascii").splitlines()]
        name = next(route[0] for route in routes if len(route) > 1 and route[1] == "00000000")
        speed = int((root / "sys/class/net" / name / "speed").read_text("ascii"))
    except (OSError, ValueError, StopIteration):
        speed = -1
    if speed <= 0:  # what virtual interfaces say
        raise ConfigError(
            'BIGCRAWL_CAPACITY_FROM is "bandwidth", but this machine does not know the speed of its link; set it to '
            '"setting" on all nodes, and BIGCRAWL_CAPACITY to the Gbit/s of this one'
        )
    return speed


class _Page(NamedTuple):
    url: str
    body: bytes
    headers: dict[bytes, bytes]


def pages_per_s() -> float:
    links = "".join(f'<p>Some words of a page. <a href="/directory/{n}.html">link</a></p>' for n in range(60))
    page = _Page("http://capacity.example/", f"<html><body>{links}</body></html>".encode(), {})
    best_s = float("inf")
    for _ in range(_TRIES):
        begun_s = time.perf_counter()
        for _ in range(_PAGES):
            PUBLIC_KEYS.of_urls(extract_links(page))
        best_s = min(best_s, time.perf_counter() - begun_s)
    return _PAGES / best_s


def _bounded(value: float) -> float:
    return min(max(value, LEAST), MOST)
