"""Counts what is not queued or not run, and reports once what the project itself does wrong."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.records.queued_url import TRAP_SHIFT
from bigcrawl.url.shape import kinds_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class Drops:
    """A crawler's counters, and what was reported already."""

    def __init__(self, crawler: Crawler, *, obeys_robots: bool) -> None:
        self._crawler = crawler
        self._obeys_robots = obeys_robots
        self._reported: set[str] = set()

    def __repr__(self) -> str:
        return f"<Drops reported={sorted(self._reported)}>"

    def count_dropped(self, reason: str, message: str, about: str = "") -> None:
        """Count a request that is not queued. If `about` names a fault of the project's, report it once."""
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value(f"bigcrawl/dropped/{reason}")
        if about:
            self.report_once(about, message)
        elif message:
            logger.debug("dropped: %(message)s", {"message": message})

    def count_undiscovered(self, urls: int) -> None:
        """Count links that are not queued because discovery is off."""
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value("bigcrawl/dropped/discovery-off", urls)

    def count_shapes(self, flags: int, urls: int = 1) -> None:
        """Count URLs that all have the same shape of a trap."""
        assert self._crawler.stats is not None
        for kind in kinds_of(flags >> TRAP_SHIFT):
            self._crawler.stats.inc_value(f"bigcrawl/traps/{kind}", urls)

    def heed_meta(self, meta: dict[str, Any]) -> None:
        """Report once that a key of Scrapy's meta has no effect here."""
        if meta.get("dont_obey_robotstxt") and self._obeys_robots:
            self.report_once("dont_obey_robotstxt", "dont_obey_robotstxt in meta has no effect: robots.txt is obeyed")

    def report_once(self, about: str, message: str) -> None:
        """Log an error, but only once for each value of `about`."""
        if about not in self._reported:
            self._reported.add(about)
            logger.error("%(message)s (reported once; later ones are counted)", {"message": message})
