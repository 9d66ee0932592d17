"""Two spiders, each of a project of its own: with a crawl for each, and with one crawl for both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_items import SETTINGS
from tests.support.crawling.plain_project import Answer, NotedSite, PlainProject
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = """
import scrapy


class Own(scrapy.Spider):
    name = "NAME"

    async def start(self):
        for url in self.urls.split():
            yield scrapy.Request(url, callback=self.NAME_first)

    def NAME_first(self, response):
        yield {"url": response.url, "spider": self.name, "level": 1}
        for number in range(3):
            yield response.follow(f"/{number}", callback=self.NAME_second, cb_kwargs={"of": "NAME"})

    def NAME_second(self, response, of):
        yield {"url": response.url, "spider": of, "level": 2}
"""


class One(PlainProject):
    spider = "one"
    source = SOURCE.replace("NAME", spider)


class Two(PlainProject):
    spider = "two"
    source = SOURCE.replace("NAME", spider)


HOSTS = [f"127.0.0.{number}" for number in range(2, 8)]
LINES = ("-o", "items.jl")


@pytest.fixture
def site() -> Iterator[NotedSite]:
    with NotedSite({"/robots.txt": Answer(404)}) as one:
        yield one


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[tuple[PlainProject, PlainProject]]:
    """On one Redis and in one state directory."""
    with no_strays_below(tmp_path), PrivateRedis() as server:
        settings = {
            **SETTINGS,
            "BIGCRAWL_REDIS_URL": server.url,
            "BIGCRAWL_STATE_DIR": str(tmp_path / "state"),
            "BIGCRAWL_HOST_DELAY": 0.3,
        }
        with One(tmp_path / "one", **settings) as one, Two(tmp_path / "two", **settings) as two:
            yield one, two


def seeds(site: NotedSite) -> list[str]:
    return [site.url(host, "/") for host in HOSTS]


def pages(site: NotedSite) -> set[tuple[str, int]]:
    """What each spider should have: URL and level."""
    return {(url, 1) for url in seeds(site)} | {(f"{url}{number}", 2) for url in seeds(site) for number in range(3)}


def assert_has_its_own(project: PlainProject, site: NotedSite) -> None:
    rows = [json.loads(line) for line in (project.directory / "items.jl").read_text().splitlines()]
    assert {row["spider"] for row in rows} == {project.spider}
    assert {(row["url"], row["level"]) for row in rows} == pages(site)
    assert "cannot be run by this spider" not in project.log


def test_each_spider_gets_its_own_pages(projects: tuple[PlainProject, PlainProject], site: NotedSite) -> None:
    """Two crawls, named after their spiders, of the same pages at the same time."""
    for project in projects:
        project.start(*seeds(site), output=LINES)
    for project in projects:
        assert project.wait() == 0
        assert_has_its_own(project, site)


@pytest.mark.long("starts three crawls; another one here has two spiders")
def test_second_spider_of_a_crawl_is_refused(projects: tuple[PlainProject, PlainProject], site: NotedSite) -> None:
    """While the first one's node is alive, and while its URLs wait; once it is finished, the crawl is the second's.

    It is refused by its name, also if its settings differ.
    """
    one, two = projects
    name = {"BIGCRAWL_CRAWL": "both", "BIGCRAWL_LEASE_SECONDS": 10}
    slow = {**name, "BIGCRAWL_HOST_DELAY": 15}  # it is killed half-way
    one.start(*seeds(site), output=LINES, **slow)
    wait_until(lambda: len(site.paths()) > len(HOSTS), "the first one fetches pages")
    other = {**slow, "BIGCRAWL_HOST_DELAY": 3, "BIGCRAWL_PARTITIONS": 2}
    two.start(*seeds(site), output=LINES, **other)
    assert two.wait() == 1
    assert "the spider is two here and one at node" in two.log
    one.kill()
    two.start(*seeds(site), output=LINES, **other)
    assert two.wait() == 1
    assert "crawl 'both' belongs to spider 'one' and is not finished" in two.log
    one.start(*seeds(site), output=LINES, **name)
    assert one.wait() == 0
    assert_has_its_own(one, site)
    fetched = len(site.paths())
    two.start(*(f"{url}new" for url in seeds(site)), output=LINES, **name)
    assert two.wait() == 0
    assert set(site.paths()[fetched:]) - {"/robots.txt"} == {"/new"}, "what was seen is not fetched again"
    rows = [json.loads(line) for line in (two.directory / "items.jl").read_text().splitlines()]
    assert {(row["url"], row["spider"]) for row in rows} == {(f"{url}new", "two") for url in seeds(site)}
    one.start(*seeds(site), output=LINES, **name)
    assert one.wait() == 0, "the finished crawl may be the first one's again"
