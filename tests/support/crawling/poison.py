"""A crawl whose spider is killed or hung by some of its pages, and who starts it again."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.crawling.crawls import Crawl

if TYPE_CHECKING:
    from tests.support.crawling.plain_project import NotedSite

HOSTS, PAGES = 30, 10
DEATHS_MAX = 3
IN_PROCESS_MAX = 16
SETTINGS = {
    "BIGCRAWL_HOST_DELAY": 0.02,
    "BIGCRAWL_PARTITIONS": 16,
    "BIGCRAWL_STANDSTILL_SECONDS": 2,
    "BIGCRAWL_IN_PROCESS_MAX": IN_PROCESS_MAX,
    "BIGCRAWL_DEATHS_MAX": DEATHS_MAX,
    "CONCURRENT_REQUESTS": 16,
}

SPIDER = """
import os, re, signal
from bigcrawl.spiders.broad import BroadSpider


class Poisoned(BroadSpider):
    name = "broad"

    def parse(self, response):
        word = response.url.rpartition("/")[2]
        if os.path.exists(os.environ["ANTIDOTE"]):
            pass
        elif word.startswith("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        elif word.startswith("loop"):
            while True:
                pass
        elif word.startswith("abort"):
            os.abort()
        elif word.startswith("lock"):
            re.match(r"(a|a)*$", "a" * 40 + "b")  # in C, without end: no other thread runs meanwhile
        return super().parse(response)
"""


@dataclass
class PoisonedCrawl(Crawl):
    """`scrapy crawl broad`; pages named kill, loop, abort or lock end its process, unless there is an antidote."""

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.directory / "poisoned.py").write_text(SPIDER)
        path = f"{self.directory}{os.pathsep}{Path(__file__).parents[3]}"
        self.environment = {**self.environment, "PYTHONPATH": path, "ANTIDOTE": str(self.antidote)}
        self.settings = {"SPIDER_MODULES": "poisoned", **self.settings}

    @property
    def antidote(self) -> Path:
        """A file that makes all pages harmless."""
        return self.directory / "antidote"

    def supervise(self, starts_max: int, timeout_s: float = 60) -> int:
        """Start it until it ends well; how often it had to be started again."""
        for again in range(starts_max):
            if self.run(timeout_s) == 0:
                return again
        raise AssertionError(f"not at its end after {starts_max} starts")

    def dead(self, *words: str) -> Any:
        """The URLs that `scrapy frontier dead` tells of."""
        return sorted(letter["url"] for letter in self.asked("dead", *words)["dead"])


def urls_of(site: NotedSite, *poison: str, hosts: int = HOSTS) -> list[str]:
    """All pages of a site on many hosts; the poisonous ones lie on several of them, in the midst of others."""
    names = [f"127.0.0.{number}" for number in range(2, 2 + hosts)]
    urls = [site.url(host, f"/page{page}") for page in range(PAGES) for host in names]
    for number, name in enumerate(poison):
        urls[(PAGES // 2) * hosts + 3 * number] = site.url(names[3 * number], f"/{name}")
    return urls


def visits_of(site: NotedSite) -> Counter[str]:
    """How often each URL was asked for, robots.txt left out."""
    return Counter(f"http://{v.host}:{site.port}{v.path}" for v in site.visits if v.path != "/robots.txt")
