"""Spiders over stored pages: items are those of the crawl that stored them, whatever its web was like."""

from __future__ import annotations

import gzip
import json
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.crawling.verdicts import warc_files
from tests.unit.warc.reading import read_checked

if TYPE_CHECKING:
    from pathlib import Path

LIVE: dict[str, Any] = {
    "SPIDER_MODULES": "tests.support.noting_spiders",
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_WARC_COPIES": "by-reference",
    "RETRY_ENABLED": False,  # a try more lowers the priority, and tries are not stored
    "LOG_LEVEL": "INFO",
}
FEATURES = "robots,directives,redirects,statuses,bodies,markup,charsets,copies,sitemaps"


@dataclass(frozen=True)
class Run:
    """Items and log of a run."""

    items: list[dict[str, Any]]
    log: str

    @property
    def sorted_items(self) -> list[str]:
        return sorted(json.dumps(item, sort_keys=True) for item in self.items)


def run(directory: Path, seeds: list[str], spider: str, arguments: dict[str, str], **settings: Any) -> Run:
    """A crawl, or a run over stored pages, to its end."""
    path = directory / "items.jl"
    feeds = json.dumps({str(path): {"format": "jsonlines", "overwrite": True}})
    settings = {**LIVE, "FEEDS": feeds, **settings}
    with Crawl(directory, seeds, settings, spider=spider, arguments=arguments) as crawl:
        assert crawl.run() == 0, crawl.log.read_text()
        log = crawl.log.read_text()
    return Run([json.loads(line) for line in path.read_text().splitlines()], log)


def shared(redis_url: str) -> dict[str, Any]:
    """Settings of a crawl in the Redis of all tests."""
    return {"BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_CRAWL": f"stored-{uuid.uuid4().hex}"}


def over(pages: Path, directory: Path, seeds: list[str], spider: str, **more: Any) -> Run:
    """A run over what the crawl in the directory `pages` has stored."""
    arguments = more.pop("arguments", {})
    more = {"BIGCRAWL_STATE_DIR": None, "BIGCRAWL_WARC_DIR": None, **more}
    found = run(directory, seeds, spider, arguments, BIGCRAWL_SOURCE=pages / "warc" / "*.warc.gz", **more)
    assert not (directory / "state").exists()
    assert not (directory / "warc").exists()
    return found


@pytest.mark.parametrize(
    ("spider", "arguments", "features"),
    [
        pytest.param(
            "noting", {}, FEATURES, marks=pytest.mark.long("a web of all features; a smaller one is crawled here")
        ),
        pytest.param(
            "noting",
            {"sitemaps": "1", "scope": "host"},
            "sitemaps,robots",
            marks=pytest.mark.long("the same spider, by sitemaps"),
        ),
        pytest.param(
            "noting_focused", {"topic": "the a*"}, "plain", marks=pytest.mark.long("another spider of the same pages")
        ),
    ],
)
def test_items_are_those_of_the_crawl(
    tmp_path: Path, redis_url: str, spider: str, arguments: dict[str, str], features: str
) -> None:
    """All that a callback is given: bodies, headers, flags, depth, its arguments, redirects, priorities, classes."""
    with SimulatedWeb(tmp_path / "web", hosts=6, pages=8, features=features) as web:
        seeds = web.seeds
        live = run(tmp_path / "live", seeds, spider, arguments, **shared(redis_url))
    again = over(tmp_path / "live", tmp_path / "again", seeds, spider, arguments=arguments)
    assert len(live.items) > 20
    assert again.sorted_items == live.sorted_items
    assert "Traceback" not in again.log
    assert "nothing is fetched" in again.log


@dataclass(frozen=True)
class Crawled:
    """What a crawl has left."""

    directory: Path
    seeds: list[str]
    live: Run


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Crawled:
    """A crawl of a plain web; its server is gone."""
    directory = tmp_path_factory.mktemp("crawled")
    with SimulatedWeb(directory / "web", hosts=5, pages=6) as web:
        live = run(directory / "live", web.seeds, "noting", {}, **shared(redis_url))
        return Crawled(directory / "live", web.seeds, live)


@pytest.mark.parametrize("spider", ["noting", "noting_redis"])
def test_spider_is_given_all_pages_if_so_set(crawled: Crawled, tmp_path: Path, spider: str) -> None:
    """Without seeds, each page once, with its depth; robots.txt is none; links add nothing."""
    again = over(crawled.directory, tmp_path, [], spider, BIGCRAWL_SOURCE_PAGES="all")
    assert again.sorted_items == crawled.live.sorted_items


def test_another_spider_runs_over_the_pages(crawled: Crawled, tmp_path: Path) -> None:
    """New applications over an old crawl: a CrawlSpider over what a broad crawl has fetched."""
    again = over(crawled.directory, tmp_path, crawled.seeds, "noting_rules")
    assert {item["url"] for item in again.items} == {item["url"] for item in crawled.live.items}


def test_pages_of_a_time_are_those_until_then(crawled: Crawled, tmp_path: Path) -> None:
    """Before the crawl there were none, and the run says what to do."""
    again = over(crawled.directory, tmp_path, crawled.seeds, "noting", BIGCRAWL_SOURCE_TIME="2001")
    assert again.items == []
    assert "from before the end of 2001 (BIGCRAWL_SOURCE_TIME)" in again.log


def test_pages_that_a_callback_fetches_by_itself_are_stored_ones(crawled: Crawled, tmp_path: Path) -> None:
    """Media pipelines fetch so, too. A `start` that waits for a page gets it, after a second."""
    again = over(crawled.directory, tmp_path, crawled.seeds, "noting_inline")
    assert [item["url"] for item in again.items] == crawled.seeds[:2]
    assert all(item["robots"] and item["missing"] == "PageNotStoredError" for item in again.items)


def test_filters_hold_for_stored_pages(crawled: Crawled, tmp_path: Path) -> None:
    """Those of links, of media types and of texts; several pages at a time are the same ones."""
    filters = {"BIGCRAWL_FILTER_EXTENSIONS": "pdf,txt", "BIGCRAWL_FILTER_MEDIA_TYPES": "text/html"}
    again = over(crawled.directory, tmp_path, crawled.seeds, "noting", BIGCRAWL_SOURCE_CONCURRENCY=8, **filters)
    assert {item["class"] for item in again.items} == {"HtmlResponse"}
    wanted = {item["url"] for item in crawled.live.items if item["class"] == "HtmlResponse"}
    assert {item["url"] for item in again.items} == wanted
    assert len(again.items) == len(wanted)


def test_run_ends_after_so_many_pages(crawled: Crawled, tmp_path: Path) -> None:
    """The first ones of the crawl, to try a spider."""
    again = over(crawled.directory, tmp_path, crawled.seeds, "noting", BIGCRAWL_MAX_PAGES=7)
    records = [record for path in warc_files(crawled.directory / "warc") for record in read_checked(path)]
    answers = [(each.headers["WARC-Target-URI"], each.block) for each in records if each.type == "response"]
    first = [(url, block) for url, block in answers if not url.endswith("/robots.txt")][:7]
    wanted = [url for url, block in first if not block.startswith(b"HTTP/1.1 30")]  # a redirect is a page, and no item
    assert sorted(item["url"] for item in again.items) == sorted(wanted)
    assert "'bigcrawl/source/pages': 7," in again.log


def test_damaged_pages_are_told_and_counted(crawled: Crawled, tmp_path: Path) -> None:
    """The others are given; a page behind a damaged one that nobody else links to is not asked for."""
    shutil.copytree(crawled.directory / "warc", tmp_path / "warc")
    [path] = (tmp_path / "warc").glob("*.warc.gz")
    path.write_bytes(path.read_bytes()[:-9_000])
    again = over(tmp_path, tmp_path / "again", [], "noting", BIGCRAWL_SOURCE_PAGES="all")
    assert 0 < len(again.items) < len(crawled.live.items)
    assert "is cut off by the end of the file; further pages of this file are counted" in again.log
    assert "'bigcrawl/source/damaged': " in again.log


@pytest.mark.parametrize(
    ("spider", "settings", "complaint"),
    [
        ("noting", {"BIGCRAWL_SOURCE": "nowhere/*.warc.gz"}, "is nowhere/*.warc.gz, but there is no such file"),
        ("noting", {"BIGCRAWL_SOURCE_TIME": "noon"}, "it takes the digits of a time"),
        ("noting_redis", {}, "takes its URLs from Redis"),
    ],
)
def test_wrong_source_ends_the_run_at_its_start(
    crawled: Crawled, tmp_path: Path, spider: str, settings: dict[str, Any], complaint: str
) -> None:
    """In one line, with exit status 1."""
    settings = {**LIVE, "BIGCRAWL_SOURCE": crawled.directory / "warc", **settings}
    with Crawl(tmp_path, crawled.seeds, settings, spider=spider) as crawl:
        assert crawl.run() == 1
        log = crawl.log.read_text()
    assert log.count("] ERROR: ") == 1
    assert complaint in log


def test_a_source_without_pages_is_told(crawled: Crawled, tmp_path: Path) -> None:
    """Its file was compressed as a whole; no seeds would help."""
    [path] = (crawled.directory / "warc").glob("*.warc.gz")
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc" / "whole.warc.gz").write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))
    again = over(tmp_path, tmp_path / "a", crawled.seeds, "noting")
    assert "the files of BIGCRAWL_SOURCE have no page;" in again.log
    assert "`warcio recompress OLD NEW`" in again.log


@pytest.mark.long("graphs of stored pages: tests/unit/graphs")
def test_graph_is_that_of_the_web(tmp_path: Path, redis_url: str) -> None:
    """Every page that a crawl has stored leads where the generator of the web says that it leads, and nowhere else."""
    with SimulatedWeb(tmp_path / "web", hosts=6, pages=10, features="redirects,charsets,copies,bodies") as web:
        run(tmp_path / "live", web.seeds, "noting", {}, **shared(redis_url))
        port, truth = web.saved.port, web.web
    crawl = Crawl(tmp_path / "live", [])
    told = crawl.asked("graph", str(tmp_path / "graphs"))
    names = (tmp_path / "graphs" / "pages.nodes").read_text().splitlines()
    count, *rows = (tmp_path / "graphs" / "pages.graph-txt").read_text().splitlines()
    assert int(count) == len(names) == len(rows) == told["graphs"]["pages"]["nodes"]
    found = {name: {names[int(number)] for number in row.split()} for name, row in zip(names, rows, strict=True)}
    fetched = set(web.expected())
    wanted = {url: set(truth.leads_to(url, port)) for url in fetched}
    assert {url: targets for url, targets in found.items() if targets} == {
        url: targets for url, targets in wanted.items() if targets
    }
    assert told["pages"] >= len(fetched)
    hosts = (tmp_path / "graphs" / "hosts.nodes").read_text().splitlines()
    assert hosts == sorted({urlsplit(name).hostname or "" for name in names})


@pytest.mark.long("a crawl of two nodes, and another over its pages; others here have those of one")
def test_pages_of_two_nodes_are_one_crawl(tmp_path: Path, redis_url: str) -> None:
    """Their files are read side by side, by time; a page comes also if the one that leads to it comes later."""
    with SimulatedWeb(tmp_path / "web", hosts=12, pages=12) as web:
        settings = {**LIVE, **shared(redis_url), "BIGCRAWL_HOST_DELAY": 0.5}
        first, second = (json.dumps({str(tmp_path / f"{n}.jl"): {"format": "jsonlines"}}) for n in (1, 2))
        with Crawl(tmp_path / "live", web.seeds, {**settings, "FEEDS": first}, spider="noting") as one:
            other = second_process_of(one)
            other.settings["FEEDS"] = second
            with other:
                one.start()
                other.start()
                assert (one.wait(300), other.wait(300)) == (0, 0)
    lines = [(tmp_path / f"{n}.jl").read_text().splitlines() for n in (1, 2)]
    again = over(tmp_path / "live", tmp_path / "again", web.seeds, "noting")
    live = Run([json.loads(line) for line in (*lines[0], *lines[1])], "")
    for item in (*live.items, *again.items):
        item["meta"].pop("depth")  # what one node found, and when the other heard of it, is no order
    assert again.sorted_items == live.sorted_items
