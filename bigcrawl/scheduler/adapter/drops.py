from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.records.queued_url import stats_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

REPORTS_MAX = 1_000
_WITHOUT_EFFECT = frozenset({"download_slot", "autothrottle_dont_adjust_delay", "priority_adjust"})


class DroppedRequests:
    def __init__(self, crawler: Crawler, *, obeys_robots: bool) -> None:
        self._crawler = crawler
        self._obeys_robots = obeys_robots
        self._reported: set[str] = set()

    def count_dropped(self, reason: str, message: str, about: str = "", *, is_fault: bool = True) -> None:
        """Count a request that is not queued, and report each `about` once, as an error if it is a fault."""
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value(f"bigcrawl/dropped/{reason}")
        if about and not is_fault:
            self._warn_once(about, f"dropped: {message}")
        elif about:
            self.report_once(about, message)
        elif message:
            logger.debug("dropped: %(message)s", {"message": message})

    def refuse_links(self, urls: int, message: str, about: str) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("bigcrawl/dropped/not-storable", urls)
        self.report_once(about, message)

    def count_undiscovered(self, urls: int) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("bigcrawl/dropped/discovery-off", urls)

    def count_traits(self, flags: int, urls: int = 1) -> None:
        assert self._crawler.stats is not None
        for stat in stats_of(flags):
            self._crawler.stats.inc_value(stat, urls)

    def count_origins(self, added_bytes: int) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("bigcrawl/links/origin_bytes", added_bytes)

    def heed_meta(self, meta: dict[str, Any]) -> None:
        if meta.get("dont_obey_robotstxt") and self._obeys_robots:
            self.report_once("dont_obey_robotstxt", "dont_obey_robotstxt in meta has no effect: robots.txt is obeyed")
        if not _WITHOUT_EFFECT.isdisjoint(meta) and "download_latency" not in meta:  # a page's meta that was copied
            for key in _WITHOUT_EFFECT.intersection(meta):
                self._warn_once(key, f"{key} in meta has no effect: docs/differences.md says what to set instead")

    def report_once(self, about: str, message: str) -> None:
        if self._is_new(about):
            logger.error("%(message)s (logged once; later ones are only counted)", {"message": message})

    def _warn_once(self, about: str, message: str) -> None:
        if self._is_new(about):
            logger.warning("%(message)s (reported once)", {"message": message})

    def _is_new(self, about: str) -> bool:
        if about in self._reported or len(self._reported) >= REPORTS_MAX:
            return False
        self._reported.add(about)
        return True
