"""What a crawl made, what it did last and what happened to it: over several nodes, a stop and a kill."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.crawling.plain_project import REPOSITORY, Answer, NotedSite, PlainProject
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = 7


class LoudProject(PlainProject):
    """Each page is an item and a warning."""

    source = """
import scrapy


class Plain(scrapy.Spider):
    name = "plain"

    async def start(self):
        for url in self.urls.split():
            yield scrapy.Request(url)

    def parse(self, response):
        self.logger.warning("read %s of me:secret@x and http://me:secret@a.example/\\x1b", response.url)
        yield {"url": response.url, "body": "x" * 10_000}
"""


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    """A crawl of some pages on a Redis of its own, which goes on when they are fetched."""
    settings: dict[str, Any] = {"ADDONS": {"bigcrawl.addon.Addon": 500}}
    with (
        no_strays_below(tmp_path),
        NotedSite() as site,
        PrivateRedis() as server,
        LoudProject(tmp_path / "project", **settings) as project,
    ):
        site.answers["/robots.txt"] = Answer(404)
        site.answers["/6"] = Answer(404)
        urls = [site.url(f"127.0.0.{2 + n}", f"/{n}") for n in range(PAGES)]
        environment = {
            "SCRAPY_SETTINGS_MODULE": "plain.settings",
            "PYTHONPATH": f"{project.directory}:{REPOSITORY}",
        }
        own = {"BIGCRAWL_REDIS_URL": server.url, "BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_CLOSE": "forever"}
        arguments = {"urls": " ".join(urls)}
        with Crawl(
            tmp_path / "crawl", urls, own, "test", arguments, environment, spider="plain", cwd=project.directory
        ) as made:
            yield made


def kinds(crawl: Crawl) -> list[str]:
    """What happened, the last first; ends apart, because a change of rules takes an end back."""
    return [event["kind"] for event in crawl.asked("events")["events"] if event["kind"] != "finished"]


def test_what_a_crawl_makes_and_what_happens_to_it_outlives_its_nodes(crawl: Crawl) -> None:
    """Items and lines are counted once; last fetches, items and lines are shown; orders and nodes are events."""
    crawl.start()
    wait_until(lambda: "delays: " in crawl.log.read_text(), "the node has joined")
    pages = PAGES - 1
    wait_until(lambda: crawl.status()["items"] == pages, "all pages are items")
    status = crawl.status()
    assert status["log"]["warnings"] >= pages
    assert status["log"]["errors"] == 0
    assert (status["spider"], status["scope"], status["paused"]) == ("plain", "any", [])
    assert len(status["seeds"]) == 5
    assert status["seeds"][0].endswith("/0")
    assert status["since_s"] > 0
    [node] = status["nodes"].values()
    assert node["items"] == pages

    recent = crawl.asked("recent")
    fetched = {fetch["url"].rsplit("/", 1)[1]: (fetch["status"], fetch["outcome"]) for fetch in recent["fetches"]}
    assert fetched == {str(number): (404 if number == PAGES - 1 else 200, "page") for number in range(PAGES)}
    assert all(item["text"].startswith("url: http://127.0.0.") for item in recent["items"])
    assert max(len(item["text"]) for item in recent["items"]) == 300
    [row] = [row for row in recent["log"] if row["logger"] == "plain"]
    assert (row["level"], row["count"]) == ("WARNING", pages)
    assert "me:secret@a" not in json.dumps(recent)
    assert "\x1b" not in row["text"]

    host = crawl.asked("host", "127.0.0.3")
    assert [fetch["status"] for fetch in host["timeline"]] == [200]
    wait_until(lambda: crawl.status()["finished"], "all is fetched")
    assert crawl.asked("events")["events"][0]["kind"] == "finished"
    crawl.asked("pause")
    crawl.asked("speed", "5/s")
    crawl.asked("resume")
    crawl.asked("budget", "a.example", "--urls", "5")
    assert kinds(crawl) == ["rule", "resumed", "speed", "paused", "node_came", "began"]
    [known] = crawl.asked("crawls")["crawls"]
    assert (known["crawl"], known["spider"], known["nodes"]) == ("test", "plain", 1)

    crawl.terminate()
    assert crawl.wait(300) == 0
    assert kinds(crawl)[0] == "node_left"
    assert crawl.status()["items"] == pages
    assert crawl.asked("crawls")["crawls"][0]["state"] == "finished"
    assert [row["count"] for row in crawl.asked("recent")["log"] if row["logger"] == "plain"] == [pages]

    crawl.start()
    wait_until(lambda: kinds(crawl)[0] == "node_came", "the next node has come")
    crawl.kill()
    crawl.start()
    wait_until(lambda: kinds(crawl)[:2].count("node_died") == 1, "the death of the last one is known")
    wait_until(lambda: len(crawl.status()["nodes"]) == 1, "the next node runs")
    assert crawl.status()["items"] == pages
