"""What a spider hands over, in real crawls: it arrives as it was, or is refused at once and harms nothing else."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, second_process_of
from tests.support.crawling.plain_project import Answer, NotedSite
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SPIDER = """
import datetime, enum, os, threading
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from scrapy import Request
from bigcrawl.links import Links
from bigcrawl.spiders.broad import BroadSpider


class Grade(enum.Enum):
    HIGH = "high"


@dataclass(frozen=True)
class Product:
    name: str
    price: Decimal
    found: datetime.date
    grades: frozenset[Grade] = frozenset()


VALUE = {
    "product": Product("lamp", Decimal("9.90"), datetime.date(2026, 11, 23), frozenset({Grade.HIGH})),
    "when": datetime.datetime(2026, 11, 23, 6, tzinfo=datetime.UTC),
    "several": (1, {2, 3}, [Grade.HIGH]),
}


class Given(BroadSpider):
    name = "broad"

    def tell(self, *words):
        with open(os.environ["TOLD"], "a") as told:
            print(*words, file=told)

    async def start(self):
        async for output in getattr(self, "start_" + self.kind)():
            yield output

    async def start_values(self):
        yield Request(self.urls, self.parse_value, meta={"value": VALUE}, cb_kwargs={"value": VALUE}, priority=True)

    def parse_value(self, response, value):
        self.tell("equal" if value == VALUE == response.meta["value"] and repr(value) == repr(VALUE) else repr(value))

    async def start_priorities(self):
        for url in self.urls.split():
            request = Request(url, priority="/page/" in url)
            if "numpy" in url:
                request.priority = np.int64(3)
            if "half" in url:
                request.priority = 0.5
            yield request
        yield Links([self.urls.split()[0] + "?links"], priority=np.int64(2))

    async def start_jars(self):
        for jar in ("one", "two", "one"):
            yield Request(self.urls, self.parse_jar, meta={"cookiejar": jar})
        yield Request(self.urls, self.parse_jar)

    def parse_jar(self, response):
        self.tell(response.meta.get("cookiejar"), response.url.rpartition("/")[2])

    async def start_handles(self):
        yield Request(self.urls, self.parse_handle, meta={"given": 1}, errback=self.failed)

    def parse_handle(self, response):
        meta = response.meta
        self.tell(meta["given"], meta.get("retry_times"), type(meta["handle"]).__name__, meta["handle"].uses)

    async def start_objects(self):
        for url in self.urls.split():
            yield Request(url, self.parse_object, meta={"lock": threading.Lock()}, errback=self.failed)

    def parse_object(self, response):
        self.tell(type(response.meta["lock"]).__name__)

    def failed(self, failure):
        self.tell("failed", type(failure.value).__name__, failure.request.url.rpartition("/")[2])

    def parse(self, response):
        pass


class Handle:
    def __init__(self):
        self.lock, self.uses = threading.Lock(), 0


class AddsHandle:
    def process_request(self, request):
        request.meta.setdefault("handle", Handle()).uses += 1
"""


@dataclass
class GivenCrawl(Crawl):
    """`scrapy crawl broad` of a spider with a start of the kind `arguments` name; it tells what it was given back."""

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.directory / "given_spider.py").write_text(SPIDER)
        path = f"{self.directory}{os.pathsep}{Path(__file__).parents[2]}"
        self.environment = {**self.environment, "PYTHONPATH": path, "TOLD": str(self.directory / "told")}
        self.arguments = {**self.arguments, "urls": " ".join(self.seeds)}
        more = {"SPIDER_MODULES": "given_spider", "BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 4}
        self.settings = {**more, **self.settings}

    @property
    def told(self) -> list[str]:
        """What the spider told."""
        told = self.directory / "told"
        return told.read_text().splitlines() if told.exists() else []


def crawl_of(directory: Path, kind: str, urls: Sequence[str], **settings: object) -> GivenCrawl:
    return GivenCrawl(directory, list(urls), dict(settings), arguments={"kind": kind})


def test_values_come_back_equal_on_another_node_after_a_kill(tmp_path: Path) -> None:
    """Dates, decimals, enumerations, dataclasses, sets and tuples, in meta and cb_kwargs."""
    with no_strays_below(tmp_path), NotedSite({"/slow": Answer(seconds=120)}) as site:
        url = site.url("127.0.0.2", "/slow")
        with crawl_of(tmp_path / "crawl", "values", [url]) as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: first.taken() == [url], "the request is in process")
            first.kill()
            site.answers["/slow"] = Answer()
            second.arguments = first.arguments
            assert second.run() == 0, second.log.read_text()
            assert isinstance(second, GivenCrawl)
            assert second.told == ["equal"]


def test_priorities_of_any_kind_harm_no_url_beside_them(tmp_path: Path) -> None:
    """bool and numpy's numbers are whole numbers; a half is refused by name, and all others are fetched."""
    with no_strays_below(tmp_path), NotedSite() as site:
        pages = ["/page/1", "/other", "/numpy", "/half", "/last"]
        urls = [site.url("127.0.0.2", page) for page in pages]
        with crawl_of(tmp_path / "crawl", "priorities", urls) as crawl:
            assert crawl.run() == 0, crawl.log.read_text()
            fetched = sorted({"/page/1", "/other", "/numpy", "/last", "/page/1?links"})
            assert sorted(set(site.paths("127.0.0.2")) - {"/robots.txt"}) == fetched
            [said] = [line for line in crawl.log.read_text().splitlines() if " ERROR: " in line]
            assert f"request {urls[3]} cannot be stored: priority is 0.5" in said
            assert crawl.run() == 0, "a later start is none the worse"


def test_start_requests_with_other_cookie_jars_are_other_requests(tmp_path: Path) -> None:
    """As on Scrapy's own scheduler, which does not filter start requests; a redirect stays in its jar."""
    answers = {"/login": Answer(302, headers={"Location": "/home"}), "/home": Answer()}
    with no_strays_below(tmp_path), NotedSite(answers) as site:
        url = site.url("127.0.0.2", "/login")
        with crawl_of(tmp_path / "crawl", "jars", [url], COOKIES_ENABLED=1) as crawl:
            assert crawl.run() == 0, crawl.log.read_text()
            assert sorted(crawl.told) == ["None home", "one home", "two home"]
            assert site.paths("127.0.0.2").count("/login") == 3


@pytest.mark.long("waits until an entry was tried so often as to be told")
def test_crawl_with_an_entry_that_cannot_be_read_says_so_until_it_is_dropped(
    tmp_path: Path, redis_url: str, crawl_name: str
) -> None:
    """Exit statuses of the crawl and of each command, as an operator meets them."""
    with no_strays_below(tmp_path), NotedSite() as site:
        urls = [site.url("127.0.0.2", "/other")]
        settings = {"BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_PARTITIONS": 1}
        with crawl_of(tmp_path / "crawl", "priorities", urls, **settings) as crawl:
            crawl.name = crawl_name
            assert crawl.run() == 0, crawl.log.read_text()
            with crawl.redis() as client:
                client.xadd(f"bigcrawl:{{{crawl.name}:p0}}:inbox", {"b": b"\x63of a later version"})
            assert crawl.run() == 1
            assert "1 inbox entries could not be read: `scrapy frontier rejected` says why" in crawl.log.read_text()
            for question in ("status", "verify", "rejected"):
                said = crawl.frontier(question, check=False)
                assert said.returncode == 1, question
                assert f"{crawl.name}/p0000/rejected" in said.stdout
            retried = crawl.frontier("rejected", "--retry", check=False)
            assert (retried.returncode, "batch format version is 99" in retried.stdout) == (1, True)
            crawl.frontier("rejected", "--drop")
            assert crawl.status()["rejected"]["entries"] == 0
            assert crawl.run() == 0, crawl.log.read_text()
            assert crawl.status()["finished"]


def test_try_keeps_its_handle_and_after_a_kill_the_stored_one_serves(tmp_path: Path) -> None:
    """What a middleware adds to meta lives with the process; the next one adds it anew to the stored try."""
    adds = {"DOWNLOADER_MIDDLEWARES": '{"given_spider.AddsHandle": 10}', "BIGCRAWL_BACKOFF": 0}
    answers: dict[str, Answer | Callable[[int], Answer]] = {"/down": Answer(503)}
    answers["/flaky"] = lambda visits: Answer(200 if visits else 503)
    with no_strays_below(tmp_path), NotedSite(answers) as site:
        with crawl_of(tmp_path / "one", "handles", [site.url("127.0.0.2", "/flaky")], **adds) as crawl:
            assert crawl.run() == 0, crawl.log.read_text()
            assert crawl.told == ["1 1 Handle 2"]
        crawl = crawl_of(tmp_path / "two", "handles", [site.url("127.0.0.3", "/down")], **adds, RETRY_TIMES=1_000)
        with crawl as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: site.paths("127.0.0.3").count("/down") > 2, "it was tried again")
            first.kill()
            site.answers["/down"] = Answer()
            second.arguments = first.arguments
            assert second.run() == 0, second.log.read_text()
            assert isinstance(second, GivenCrawl)
            [[given, retries, kind, uses]] = [line.split() for line in second.told]
            assert (given, int(retries) > 0, kind, uses) == ("1", True, "Handle", "1")


def test_what_cannot_be_stored_is_refused_to_its_errback_or_kept(tmp_path: Path) -> None:
    """The summary counts refusals, and so does its first line. Kept ones are lost at a death, and said to be."""
    with no_strays_below(tmp_path), NotedSite({"/slow": Answer(seconds=120)}) as site:
        urls = [site.url("127.0.0.2", "/a"), site.url("127.0.0.2", "/b")]
        with crawl_of(tmp_path / "refused", "objects", urls) as crawl:
            assert crawl.run() == 0, crawl.log.read_text()
            assert sorted(crawl.told) == ["failed UrlRefusedError a", "failed UrlRefusedError b"]
            said = crawl.log.read_text()
            assert "finished; 2 requests could not be stored and were refused, see the errors above" in said
            assert "BIGCRAWL_NOT_STORABLE" in said
            assert site.paths("127.0.0.2") == []
        url = site.url("127.0.0.3", "/slow")
        kept = crawl_of(tmp_path / "kept", "objects", [url], BIGCRAWL_NOT_STORABLE="memory")
        with kept as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: first.taken() == [url], "the request is in process")
            first.kill()
            site.answers["/slow"] = Answer()
            second.arguments = first.arguments
            assert second.run() == 0, second.log.read_text()
            assert isinstance(second, GivenCrawl)
            assert second.told == ["failed UrlRefusedError slow"]
            assert "held values from the memory of a process" in second.log.read_text()
            assert re.search(r"  lost-from-memory +1\n", second.log.read_text())
