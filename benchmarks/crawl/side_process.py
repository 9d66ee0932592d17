"""The process of one crawler: `python -m benchmarks.crawl.side_process spec.json`.

The spec names the spider, its arguments, the settings, and files for what the crawl leaves: its stats, and with
`profile_seconds` a profile.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.utils.misc import load_object

from benchmarks.crawl.sides import FIRST_FETCH_S, ROUND_TRIPS
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class StatsFile:
    """Writes the crawl's stats into the file BENCH_STATS_FILE when it ends, and how soon the first fetch began."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._made_s = time.monotonic()
        self._first_fetch_s: float | None = None
        crawler.signals.connect(self._record_fetch, signals.request_reached_downloader)
        # Not when the spider has closed: what counts in batches adds its last one then.
        crawler.signals.connect(self._write, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _record_fetch(self) -> None:
        self._first_fetch_s = time.monotonic() - self._made_s
        self._crawler.signals.disconnect(self._record_fetch, signals.request_reached_downloader)

    def _write(self) -> None:
        assert self._crawler.stats is not None
        stats = self._crawler.stats.get_stats()
        frontier = frontier_of(self._crawler)
        if frontier is not None and frontier.node is not None:
            stats[ROUND_TRIPS] = frontier.node.parts.crawl.client.round_trips
        stats[FIRST_FETCH_S] = self._first_fetch_s
        text = json.dumps(stats, default=str)
        Path(self._crawler.settings["BENCH_STATS_FILE"]).write_text(text)


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    extensions = {"benchmarks.crawl.side_process.StatsFile": 0}
    if spec["settings"].get("BENCH_PROFILE_SECONDS"):
        extensions["benchmarks.crawl.profiler.Profile"] = 0
    process = CrawlerProcess({**spec["settings"], "EXTENSIONS": extensions})
    process.crawl(load_object(spec["spider"]), seeds=spec["seeds"])
    process.start()


if __name__ == "__main__":
    main()
