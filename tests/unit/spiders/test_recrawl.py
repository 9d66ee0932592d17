"""The recrawl spider: its arguments are settings, and it says what has changed if it is asked to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.digests import start_digest
from bigcrawl.spiders.recrawl import RecrawlSpider

VISIT = {"change": "changed", "time": 7, "visits": 2}


def made(settings: dict[str, Any] | None = None, **arguments: Any) -> tuple[RecrawlSpider, Crawler]:
    crawler = Crawler(RecrawlSpider, settings)
    return RecrawlSpider.from_crawler(crawler, seeds="http://a.example/", **arguments), crawler


def found(spider: RecrawlSpider, meta: dict[str, Any]) -> list[Any]:
    request = Request("http://a.example/", meta=meta)
    response = HtmlResponse(
        request.url, headers={"Content-Type": "text/html"}, body=b"<a href=/b>b</a>", request=request
    )

    async def outputs() -> list[Any]:
        return [each async for each in spider.parse(response)]

    return asyncio.run(outputs())


def test_what_it_says_of_changes_makes_no_other_start_requests() -> None:
    """A crawl that is gone on with other arguments about visits has sent its seeds."""
    cases: list[dict[str, Any]] = [{}, {"changes": "1"}, {"visits": "3"}]
    assert len({start_digest(made(**arguments)[0]) for arguments in cases}) == 1


@pytest.mark.parametrize("changes", ["1", ""])
def test_a_page_that_has_moved_is_gone_and_followed(changes: str) -> None:
    """By the spider that says what has changed; others never see such an answer."""
    spider, _ = made(changes=changes)
    assert spider.follows_moved_pages is bool(changes)
    request = Request("http://a.example/x", meta={"bigcrawl_visit": {**VISIT, "change": "gone"}})
    response = Response(request.url, status=301, headers={"Location": "/y"}, request=request)

    async def outputs() -> list[Any]:
        return [each async for each in spider.parse(response)]

    if changes:
        item, links = asyncio.run(outputs())
        assert (item["change"], links.urls, links.canonical) == ("gone", ["http://a.example/y"], True)


def test_arguments_are_settings() -> None:
    """What is not given is the spider's or the project's."""
    _, crawler = made()
    revisits = read_config(crawler.settings).feature_config(RevisitConfig)
    assert (revisits.rule, revisits.usual_s, revisits.visits_max) == ("change-rate", 604_800, 0)
    _, crawler = made({"BIGCRAWL_REVISIT_SECONDS": 900}, policy="freshness", visits="3")
    revisits = read_config(crawler.settings).feature_config(RevisitConfig)
    assert (revisits.rule, revisits.usual_s, revisits.visits_max) == ("freshness", 900, 3)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"policy": "often"}, "BIGCRAWL_REVISIT is 'often'"),
        ({"every": "daily"}, "BIGCRAWL_REVISIT_SECONDS"),
        ({"every": "60"}, "BIGCRAWL_REVISIT_SECONDS is 60; must be between BIGCRAWL_REVISIT_SECONDS_MIN, 300, and"),
        ({"visits": "-1"}, "BIGCRAWL_REVISIT_VISITS_MAX"),
    ],
)
def test_a_wrong_argument_is_told_by_the_check_of_its_setting(arguments: dict[str, Any], complaint: str) -> None:
    """In one line, with what it should be."""
    _, crawler = made(None, **arguments)
    with pytest.raises(ConfigError, match=complaint):
        read_config(crawler.settings)


def test_changes_are_items_if_they_are_wanted() -> None:
    """Links are followed all the same; a page of which nothing was learned makes no item."""
    spider, _ = made(changes="1")
    item, links = found(spider, {"bigcrawl_visit": VISIT})
    assert item == {"url": "http://a.example/", **VISIT}
    assert isinstance(links, Links)
    assert [type(each) for each in found(spider, {})] == [Links]
    assert [type(each) for each in found(made()[0], {"bigcrawl_visit": VISIT})] == [Links]
