"""Crawls of others go on here: nothing of a real scrapy-redis crawl is fetched twice, and nothing is lost."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import redis
from queuelib import LifoDiskQueue
from scrapy import Request

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SPIDER = """
from bigcrawl.url.canonical import canonicalize
from scrapy import Request
from scrapy.linkextractors import LinkExtractor

class Site(Base):
    name = "site"
    custom_settings = {"HTTPERROR_ALLOW_ALL": True, "RETRY_ENABLED": False}
    extractor = LinkExtractor()

    def make_request_from_data(self, data):
        return Request(data.decode())

    def parse(self, response):
        if hasattr(response, "text"):
            for link in self.extractor.extract_links(response):
                # For Scrapy, each of this web's spellings of a URL is another one.
                url = canonicalize(link.url)
                yield Request(url, callback=self.parse, errback=self.failed, meta={"job": (1, "two")})

    def failed(self, failure):
        self.logger.info("the errback got %r", failure.value)
"""
THEIRS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": 1,
    "SPIDER_MODULES": "theirs",
    "ROBOTSTXT_OBEY": 1,
    "CONCURRENT_REQUESTS": 4,
    "LOG_LEVEL": "INFO",
    "TELNETCONSOLE_ENABLED": 0,
    "REMOTE_CONTROL_ENABLED": 0,
    "COOKIES_ENABLED": 0,
    "USER_AGENT": "bigcrawl",  # the same robots rules apply
}
OURS = {
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_LEASE_SECONDS": 5,
    "SPIDER_MODULES": "ours",
    "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
}


class SiteCrawl(Crawl):
    """A crawl of the spider above, on bigcrawl."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "scrapy", "crawl", "site", *self.options()]


def write_spiders(directory: Path) -> None:
    directory.mkdir()
    for module, base in (("theirs", "scrapy_redis.spiders"), ("ours", "bigcrawl.spiders.redis_spider")):
        (directory / f"{module}.py").write_text(f"from {base} import RedisSpider as Base\n{SPIDER}")


def half_done(directory: Path, web: SimulatedWeb, url: str, fetches: int) -> None:
    """Crawl with scrapy-redis, and stop after some fetches."""
    settings = {**THEIRS, "REDIS_URL": url}
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    environment = {"PATH": "", "PYTHONPATH": str(directory), "SCRAPY_SETTINGS_MODULE": "theirs"}
    with (directory / "theirs.log").open("wb") as log:
        command = [sys.executable, "-m", "scrapy", "crawl", "site", *options]
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
        try:
            wait_until(lambda: len(web.exchanges()) > fetches or process.poll() is not None, "a part is fetched")
            web.pause()  # at once, so that a part is left
            process.terminate()
            web.resume()
            assert process.wait(300) == 0, (directory / "theirs.log").read_text()
        finally:
            process.kill()
            process.wait()


def pages(web: SimulatedWeb) -> Counter[str]:
    exchanges = (one for one in web.exchanges() if one.target != "/robots.txt")
    return Counter(f"http://{one.host}:{web.saved.port}{one.target}" for one in exchanges)


@pytest.mark.long(
    "a crawl by scrapy-redis, which starts cold, and one that goes on; tests/annexes/foreign reads the same"
)
def test_crawl_of_scrapy_redis_goes_on_here(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """By the origin's log: every page once. What cannot be read is told, and the import may be repeated."""
    directory = tmp_path / "spiders"
    write_spiders(directory)
    with (
        SimulatedWeb(tmp_path / "web", hosts=6, pages=30) as web,
        redis.Redis.from_url(redis_url) as client,
    ):
        client.delete("site:requests", "site:dupefilter", "site:start_urls")
        client.lpush("site:start_urls", *web.seeds)
        half_done(directory, web, redis_url, 60)
        before = pages(web)
        waiting = client.zcard("site:requests")
        assert waiting > 10
        client.zadd("site:requests", {b"garbage": 1, pickle.dumps({"url": "http://a.example/", "meta": {1: len}}): 2})
        ours = {**OURS, "BIGCRAWL_REDIS_URL": redis_url}
        environment = {"PYTHONPATH": str(directory)}
        with SiteCrawl(tmp_path / "ours", [], ours, name=crawl_name, environment=environment) as crawl:
            words = ("import", "--from", "scrapy-redis", "--spider", "site", redis_url)
            for _ in range(2):
                said = crawl.frontier(*words, check=False)
                assert said.returncode == 1
                assert f"{waiting:,} URLs are in\n" in said.stdout
                assert "holds a builtins.len" in said.stdout
                assert "left out: site:requests, request" in said.stdout
            assert crawl.run() == 0
            log = crawl.log.read_text()
        assert client.zcard("site:requests") == waiting + 2, "nothing was changed"
        after = pages(web)
    assert "UrlRefusedError" not in log, "a link that was fetched there is no failure"
    twice = {url: count for url, count in after.items() if count > 1}
    assert twice == {}
    assert before.total() > 50
    wanted = {url for url in web.expected() if "robots.txt" not in url}
    assert wanted - after.keys() == set(), log[-3000:]


def test_import_begins_a_crawl_with_what_it_is_given(tmp_path: Path) -> None:
    """A list, an index and a JOBDIR, one after the other; what is no URL is told. All are there to be fetched."""
    (tmp_path / "urls.txt").write_text("http://a.example/1\nno url\n")
    (tmp_path / "index.cdxj").write_text('example,a)/2 20260102 {"url": "http://a.example/2"}\n')
    job = tmp_path / "job"
    (job / "requests.queue").mkdir(parents=True)
    queue = LifoDiskQueue(str(job / "requests.queue" / "0"))
    queue.push(pickle.dumps(Request("http://a.example/3").to_dict()))
    queue.close()
    crawl = Crawl(tmp_path / "crawl", [], {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_CRAWL": None}, name="seeds")
    said = crawl.frontier("import", "--from", "urls", "--spider", "seeds", str(tmp_path / "urls.txt"), check=False)
    assert said.returncode == 1
    assert "crawl seeds: 1 URLs are in\nleft out: " in said.stdout
    assert crawl.asked("import", "--from", "cdx", str(tmp_path / "index.cdxj"))["sent"] == 1
    said = crawl.frontier("import", "--from", "jobdir", str(job), check=False)
    assert "requests.seen is empty or not read" in said.stdout
    assert said.returncode == 0  # all that was there is in
    assert crawl.status()["urls"]["inbox"] == 3
    assert crawl.asked("speed")["paused"] == []
    said = crawl.frontier("import", "--from", "jobdir", str(tmp_path), check=False)
    assert said.stderr.count("\n") == 1
    assert "is not a JOBDIR" in said.stderr
