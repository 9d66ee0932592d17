"""Spiders that take entries from a list in Redis: each is fetched once, by several nodes, over kill -9."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import redis

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.planted import FORGED, PLANTED, assert_is_plain
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SPIDER = """
from scrapy.http import HtmlResponse

from bigcrawl.links import Links
from bigcrawl.spiders.redis_spider import RedisSpider

class Listed(RedisSpider):
    name = "listed"
    redis_batch_size = 20

    def parse(self, response):
        yield {"url": response.url, "job": response.meta.get("job")}

class Following(Listed):
    name = "following"

    def parse(self, response):
        if isinstance(response, HtmlResponse):
            yield Links.from_page(response)
"""
IN_PROCESS_MAX = 8
PUSHED = 100
SETTINGS = {
    "BIGCRAWL_IN_PROCESS_MAX": IN_PROCESS_MAX,
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_LEASE_SECONDS": 3,
    "BIGCRAWL_REPORT_DIR": None,
}


class ListedCrawl(Crawl):
    """A crawl of the spider above."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "scrapy", "crawl", self.spider, *self.options()]


def listed_crawl(directory: Path, redis_url: str, name: str, *, spider: str = "listed", **settings: Any) -> ListedCrawl:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "listed.py").write_text(SPIDER)
    environment = {"PYTHONPATH": str(directory)}
    ours = {**SETTINGS, "BIGCRAWL_REDIS_URL": redis_url, "SPIDER_MODULES": "listed", **settings}
    return ListedCrawl(directory, [], ours, name=name, environment=environment, spider=spider)


def fetched(web: SimulatedWeb) -> Counter[str]:
    exchanges = (one for one in web.exchanges() if one.target != "/robots.txt")
    return Counter(f"http://{one.host}:{web.saved.port}{one.target}" for one in exchanges)


def is_nothing_left(crawl: Crawl) -> bool:
    urls = crawl.status()["urls"]
    return not any(urls[where] for where in ("inbox", "disk", "queued", "taken"))


@pytest.mark.long("nodes that are killed one after the other; test_fault kills more of them")
def test_each_entry_is_fetched_once_whoever_dies(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """Two nodes read one list; one is killed again and again while it reads. Bad entries stop neither."""
    key = f"{crawl_name}:start_urls"
    with SimulatedWeb(tmp_path / "web", hosts=20, pages=20) as web, redis.Redis.from_url(redis_url) as client:
        urls = sorted(url for url, status in web.expected().items() if status == 200)
        first = listed_crawl(tmp_path / "one", redis_url, crawl_name, REDIS_START_URLS_KEY=key)
        more: dict[str, Any] = {"BIGCRAWL_STATE_DIR": tmp_path / "one" / "state", "REDIS_START_URLS_KEY": key}
        second = listed_crawl(tmp_path / "two", redis_url, crawl_name, **more)
        client.rpush(key, "no url", "x" * (10 << 20))
        with first, second:
            first.start()
            for at in range(0, len(urls), PUSHED):
                second.start()
                client.lpush(key, *urls[at : at + PUSHED])
                wait_until(lambda: not client.exists(key), "all are taken")
                second.kill()
            wait_until(lambda: fetched(web).keys() >= set(urls), "all are fetched")
            # A killed node may have been fetching this one, which is then fetched again for that.
            wait_until(lambda: is_nothing_left(first), "nothing else is left", timeout_s=300)
            before = fetched(web)[urls[0]]
            client.lpush(key, json.dumps({"url": urls[0], "meta": {"job": 7}}))
            wait_until(lambda: fetched(web)[urls[0]] > before, "an entry that is pushed again is fetched again")
            first.terminate()
            assert first.wait(300) == 0
        again = fetched(web) - Counter([*urls, urls[0]])
        assert again.total() <= second.starts * IN_PROCESS_MAX, "only what a killed node was fetching is repeated"
        assert client.hkeys(f"bigcrawl:list:{{{key}}}:entries") == [b""]


def test_spider_ends_when_told_and_names_what_is_wrong(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """After `max_idle_time`; bad entries are counted; a key of another type ends it in a line."""
    key = f"{crawl_name}:start_urls"
    with SimulatedWeb(tmp_path / "web", hosts=2, pages=2) as web, redis.Redis.from_url(redis_url) as client:
        client.rpush(key, "no url", '{"url": 5}', "x" * (10 << 20), b"\xff\xfe", web.seeds[0])
        settings: dict[str, Any] = {"REDIS_START_URLS_KEY": key, "MAX_IDLE_TIME_BEFORE_CLOSE": 1}
        crawl = listed_crawl(tmp_path / "one", redis_url, crawl_name, **settings)
        assert crawl.run() == 0
        log = crawl.log.read_text()
        assert log.count("is left out") == 4, log
        assert re.search(r"'bigcrawl/entries/bad': 4\b", log)
        assert re.search(r"'bigcrawl/entries/taken': 1\b", log)
        assert fetched(web) == Counter([web.seeds[0]])
        client.set(key, "x")
        assert crawl.run() == 1
        assert re.search(r"ERROR: the key '.*' is a string: entries are taken from", crawl.log.read_text())
        assert "Traceback" not in crawl.log.read_text()
        assert "is finished:" not in crawl.log.read_text(), "its list may have more"
        theirs = {
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        }
        other = listed_crawl(tmp_path / "two", redis_url, crawl_name, **settings, **theirs, REDIS_URL=redis_url)
        assert other.run() == 1
        assert "needs bigcrawl's scheduler, but SCHEDULER is scrapy_redis" in other.log.read_text()
        assert client.type(key) == b"string", "it took nothing"


def test_method_of_an_entry_forges_no_line(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """Whoever may push entries may not write into the log, nor hide what was written."""
    key, planted = f"{crawl_name}:start_urls", f"GET{PLANTED.upper()}"
    with SimulatedWeb(tmp_path / "web", hosts=2, pages=2) as web, redis.Redis.from_url(redis_url) as client:
        client.rpush(key, json.dumps({"url": web.seeds[0], "method": planted}), web.seeds[1])
        settings: dict[str, Any] = {"REDIS_START_URLS_KEY": key, "MAX_IDLE_TIME_BEFORE_CLOSE": 1, "LOG_LEVEL": "DEBUG"}
        crawl = listed_crawl(tmp_path / "one", redis_url, crawl_name, **settings)
        assert crawl.run() == 0
    log = crawl.log.read_text()
    assert_is_plain(log, ("\\x1b]0;OWNED",))
    assert not [line for line in log.splitlines() if line.startswith(FORGED.upper())]


def test_entries_lead_within_the_scope_and_past_no_filter(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """An entry brings the pages of its host that links lead to, but for what a filter drops, and no other host's."""
    key = f"{crawl_name}:start_urls"
    with SimulatedWeb(tmp_path / "web", hosts=6, pages=8) as web, redis.Redis.from_url(redis_url) as client:
        entries = web.seeds[:2]
        (tmp_path / "paths.txt").write_text("Disallow: /topic-0/item-4/\n")
        client.rpush(key, *entries)
        settings: dict[str, Any] = {
            "REDIS_START_URLS_KEY": key,
            "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
            "HTTPERROR_ALLOW_ALL": 1,
        }
        settings |= {"BIGCRAWL_SCOPE": "host", "BIGCRAWL_FILTER_PATHS": tmp_path / "paths.txt"}
        crawl = listed_crawl(tmp_path / "one", redis_url, crawl_name, spider="following", **settings)
        assert crawl.run() == 0, crawl.log.read_text()
        log = crawl.log.read_text()
        assert fetched(web).keys() == within_hosts(web, entries, "/topic-0/item-4/")
        assert re.search(r"'bigcrawl/dropped/scope': \d", log)
        assert re.search(r"'bigcrawl/dropped/path': \d", log)


def within_hosts(web: SimulatedWeb, entries: list[str], dropped: str) -> set[str]:
    """What links and redirects lead to from the entries without leaving their hosts."""
    found, waiting = set(entries), list(entries)
    while waiting:
        at = waiting.pop()
        host = urlsplit(at).netloc
        for url in web.web.leads_to(at, web.saved.port):
            path = url.partition(host)[2]
            if (
                path
                and not path.startswith(dropped)
                and web.web.allows(host.partition(":")[0], path)
                and url not in found
            ):
                found.add(url)
                waiting.append(url)
    return found
