"""The sides of the benchmark: which spider each runs, and with which settings. The one place that says so.

What all have in common stands in `COMMON`; a side adds what makes it that side. To add one: a row in `SIDES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

CONCURRENCY: Final = 64
ROUND_TRIPS: Final = "bench/redis_round_trips"  # bigcrawl's, over the whole crawl, among its stats
FIRST_FETCH_S: Final = "bench/first_fetch_s"  # since the crawler was made, its joining of the crawl included
USER_AGENT: Final = "benchbot/1.0 (+http://127.0.0.1/)"

COMMON: Final[dict[str, Any]] = {
    "CONCURRENT_REQUESTS": CONCURRENCY,
    "ROBOTSTXT_OBEY": True,
    "USER_AGENT": USER_AGENT,
    # Of no use to any crawl, and open ports on a machine that measures.
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One crawler.

    Attributes:
        title: as the table has it.
        spider: where its class is.
        settings: Scrapy's, on top of `COMMON`.
        uses_redis: whether a server is started for it.
    """

    title: str
    spider: str
    settings: dict[str, Any] = field(default_factory=dict)
    uses_redis: bool = False


PEER_SPIDER: Final = "benchmarks.crawl.spiders.PeerSpider"

SIDES: Final[dict[str, Side]] = {
    # Robots, politeness machinery, DRUM, Redis and gzipped WARC files are on by default. Off is what cannot be
    # on for all sides: the delays, and the ban on loopback addresses, where the origin is.
    "bigcrawl": Side(
        "bigcrawl, all on",
        "bigcrawl.spiders.broad.BroadSpider",
        {
            "ADDONS": {"bigcrawl.addon.Addon": 500},
            "LOG_LEVEL": "INFO",
            "BIGCRAWL_HOST_DELAY": 0,
            "BIGCRAWL_SERVER_DELAY": 0,
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
        },
        uses_redis=True,
    ),
    # Scrapy's own defaults, its log of every page included.
    "stock": Side("Scrapy", PEER_SPIDER),
    # What "Broad Crawls" in Scrapy's documentation advises, but for the number of concurrent requests; the
    # priority queue that it names is the default of late. Breadth-first keeps the queue's memory small there.
    "tuned": Side(
        "Scrapy, tuned",
        PEER_SPIDER,
        {
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
            "REACTOR_THREADPOOL_MAXSIZE": 20,
            "LOG_LEVEL": "INFO",
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "DOWNLOAD_TIMEOUT": 15,
            "REDIRECT_ENABLED": False,
            "DEPTH_PRIORITY": 1,
            "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
            "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        },
    ),
    # As its README sets it up.
    "scrapy-redis": Side(
        "scrapy-redis",
        PEER_SPIDER,
        {
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        },
        uses_redis=True,
    ),
}


def settings_of(name: str, directory: Path, redis_url: str | None) -> dict[str, Any]:
    """All settings of a side whose run has a directory and, if it uses one, a Redis of its own."""
    chosen = {**COMMON, **SIDES[name].settings, "LOG_FILE": str(directory / "crawl.log")}
    if name == "bigcrawl":
        chosen["BIGCRAWL_STATE_DIR"] = str(directory / "state")
        chosen["BIGCRAWL_WARC_DIR"] = str(directory / "warc")
        chosen["BIGCRAWL_REDIS_URL"] = redis_url
    elif SIDES[name].uses_redis:
        chosen["REDIS_URL"] = redis_url
    return chosen
