"""A spider that is started with other arguments: pages come back to the run that found them, or nothing starts."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_items import SETTINGS
from tests.support.crawling.plain_project import REPOSITORY, Answer, NotedSite, PlainProject
from tests.support.running.processes import no_strays_below, spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Tagged(PlainProject):
    """Yields items with the tag that it was started with; its other arguments may change."""

    source = """
import scrapy


class Plain(scrapy.Spider):
    name = "plain"
    changeable_arguments = ("urls", "pages")

    async def start(self):
        for url in self.urls.split():
            yield scrapy.Request(url)

    def parse(self, response):
        yield {"url": response.url, "tag": self.tag}
        if response.url.endswith("/"):
            yield from response.follow_all([str(number) for number in range(5)])
"""

    def begin(self, url: str, *arguments: str, **settings: object) -> None:
        words = [word for argument in arguments for word in ("-a", argument)]
        self.start(url, output=[*words, "-o", "items.jl"], **settings)

    @property
    def rows(self) -> list[tuple[str, str]]:
        rows = [json.loads(line) for line in (self.directory / "items.jl").read_text().splitlines()]
        return sorted((row["url"].rpartition("/")[2], row["tag"]) for row in rows)


PAGES = ["", *map(str, range(5))]

TWO_AT_ONCE = """
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

process = CrawlerProcess(get_project_settings())
for tag in "ab":
    process.crawl("plain", urls=sys.argv[1], tag=tag)
process.start()
"""


@pytest.fixture
def site() -> Iterator[NotedSite]:
    with NotedSite({"/robots.txt": Answer(404)}) as one:
        yield one


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Tagged]:
    settings = {**SETTINGS, "BIGCRAWL_STATE_DIR": str(tmp_path / "state"), "BIGCRAWL_HOST_DELAY": 0.3}
    with no_strays_below(tmp_path), Tagged(tmp_path / "project", **settings) as one:
        yield one


def errors(log: str) -> list[str]:
    return [line for line in log.splitlines() if " ERROR: " in line]


def test_crawl_goes_on_with_the_arguments_it_was_begun_with(project: Tagged, site: NotedSite) -> None:
    """A stopped crawl refuses others in one line, but for those that the spider says may change, and scrapyd's."""
    url = site.url("127.0.0.2", "/")
    site.hold_after(2)
    project.begin(url, "tag=a", "_job=one")
    wait_until(lambda: len(site.paths()) > 2, "it fetches pages")
    project.kill()
    site.settle()
    project.begin(url, "tag=b")
    assert project.wait() == 1
    [line] = errors(project.log)
    assert "the spider's argument tag is 'b' here and 'a' when crawl 'plain' was begun" in line
    assert "BIGCRAWL_CRAWL of its own, or resume with the same arguments" in line
    project.begin(url, "tag=b", BIGCRAWL_CRAWL="other")
    assert project.wait() == 0
    project.begin(f"{url} {url}new", "tag=a", "pages=9", "_job=two")
    assert project.wait() == 0
    assert set(project.rows) == {(page, "b") for page in PAGES} | {(page, "a") for page in [*PAGES, "new"]}
    project.begin(f"{url}last", "tag=b")
    assert project.wait() == 0, "the finished crawl may be taken over"
    assert ("last", "b") in project.rows


def test_two_instances_in_one_process_do_not_share_a_crawl(project: Tagged, site: NotedSite) -> None:
    """The second one is refused, and the first gets its own pages."""
    script = project.directory / "run.py"
    script.write_text(TWO_AT_ONCE)
    log = project.directory / "log0.txt"
    environment = {**os.environ, "PYTHONPATH": f"{project.directory}{os.pathsep}{REPOSITORY}"}
    environment |= {"SCRAPY_SETTINGS_MODULE": "plain.settings"}
    with log.open("wb") as file:
        command = [sys.executable, str(script), site.url("127.0.0.2", "/")]
        spawn(command, cwd=project.directory, env=environment, stdout=file, stderr=file).wait(300)
    [line] = errors(log.read_text())
    assert "the spider's argument tag is" in line
    assert sorted(set(site.paths("127.0.0.2")) - {"/robots.txt"}) == sorted(f"/{page}" for page in PAGES)
