"""What is not queued or not run is counted; what is the project's own fault is said, once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.records.queued_url import TRAP_SHIFT
from bigcrawl.url.shape import kinds_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class Drops:
    """A crawler's counters, and what was said already."""

    def __init__(self, crawler: Crawler, *, obeys_robots: bool) -> None:
        self._crawler = crawler
        self._obeys_robots = obeys_robots
        self._said: set[str] = set()

    def __repr__(self) -> str:
        return f"<Drops said={sorted(self._said)}>"

    def count_dropped(self, reason: str, message: str, about: str = "") -> None:
        """Count a request that is not queued; what it is `about`, when that is the project's fault, is told once."""
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value(f"bigcrawl/dropped/{reason}")
        if about:
            self.say_once(about, message)
        elif message:
            logger.debug("dropped: %(message)s", {"message": message})

    def count_shapes(self, flags: int, urls: int = 1) -> None:
        """Count URLs that have the shape of a trap, all of them the same."""
        assert self._crawler.stats is not None
        for kind in kinds_of(flags >> TRAP_SHIFT):
            self._crawler.stats.inc_value(f"bigcrawl/traps/{kind}", urls)

    def heed_meta(self, meta: dict[str, Any]) -> None:
        """Say once that a key of Scrapy's meta has no effect here, where its author expects one."""
        if meta.get("dont_obey_robotstxt") and self._obeys_robots:
            self.say_once("dont_obey_robotstxt", "dont_obey_robotstxt in meta has no effect: robots.txt is obeyed")

    def say_once(self, about: str, message: str) -> None:
        """Log an error, and nothing more about the same."""
        if about not in self._said:
            self._said.add(about)
            logger.error("%(message)s (said once; later ones are counted)", {"message": message})
