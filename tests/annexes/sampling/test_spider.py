"""The sample spider: walks that repeat themselves, and steps that the estimator reads."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from bigcrawl.scheduler.adapter.digests import start_digest
from bigcrawl.scheduler.adapter.request_codec import ONCE
from bigcrawl.url.key import PUBLIC_KEYS
from bigcrawl_sampling.spider import SampleSpider
from bigcrawl_sampling.steps import WalkStep, read_steps
from tests.unit.spiders.test_broad import outputs_of

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = "http://a.example/ http://b.example/"
PAGE = b"<html>" + b"".join(b'<a href="/%d">x</a>' % (n % 30) for n in range(60))


def new_spider(**arguments: Any) -> SampleSpider:
    crawler = get_crawler(SampleSpider, {"BIGCRAWL_FILTER_PATHS": ["Disallow: /9$"]})
    crawler.spider = SampleSpider.from_crawler(crawler, seeds=SEEDS, **arguments)
    return crawler.spider


def answered(
    spider: SampleSpider, make: Callable[..., Response] = HtmlResponse, **fields: Any
) -> tuple[WalkStep, list[Request]]:
    """The step of an answer to the URL /start, and the next requests."""
    request = Request("http://a.example/start", meta=fields.pop("meta", {}), cb_kwargs={"walk": 2, "step": 3})
    fields = {"body": PAGE, "headers": {"Content-Type": "text/html"}, "request": request, **fields}
    item, *further = asyncio.run(outputs_of(spider.parse(make(request.url, **fields), **request.cb_kwargs)))
    [step] = read_steps([json.dumps(item)], "items")
    return step, further


def test_walks_start_at_seeds_and_are_the_same_each_time() -> None:
    """Drawn by the seed of the dice; each step has a name of its own, and tells of a failure."""

    def starts(**arguments: Any) -> list[tuple[str, Any]]:
        requests = asyncio.run(outputs_of(new_spider(walks="50", **arguments).start()))
        assert all(request.errback.__name__ == "ended" and not request.dont_filter for request in requests)
        return [(request.url, request.meta[ONCE]) for request in requests]

    found = starts()
    assert [name for _, name in found] == [[walk, 0] for walk in range(50)]
    assert {url for url, _ in found} == set(SEEDS.split())
    assert starts() == found != starts(seed="2")


def test_other_walks_are_other_start_requests() -> None:
    """A crawl that is gone on with more walks, or other dice, makes them."""
    arguments: list[dict[str, Any]] = [{}, {"walks": 2_000}, {"restart": 0.2}, {"seed": 2}]
    assert len({start_digest(new_spider(**each)) for each in arguments}) == 4


def test_step_goes_on_to_a_link_by_chance_that_repeats() -> None:
    """The item has all links that filters let pass, each once; a repeat after a crash chooses the same."""
    spider = new_spider(restart=0.01)
    step, [further] = answered(spider)
    assert (step.walk, step.step, step.is_page, step.url) == (2, 3, True, "http://a.example/start")
    assert step.asked == step.found == PUBLIC_KEYS.of_url("http://a.example/start")
    assert len(set(step.links)) == len(step.links) == 29
    assert PUBLIC_KEYS.of_url(further.url) in step.links
    assert (further.meta[ONCE], further.cb_kwargs) == ([2, 4], {"walk": 2, "step": 4})
    assert answered(spider)[1][0].url == further.url
    assert answered(new_spider(restart=1))[1] == [], "it restarts at each page"


def test_what_is_no_page_ends_the_walk() -> None:
    """An error, a picture, and what has no answer; after a redirect, what was asked for is no page."""
    spider = new_spider(restart=0.01)
    step, further = answered(spider, status=404)
    assert (step.is_page, step.links, further) == (False, (), [])
    step, further = answered(spider, Response)
    assert (step.is_page, step.links, further) == (True, (), [])
    step, further = answered(spider, meta={"redirect_urls": ["http://a.example/old"]})
    assert (step.is_page, step.asked, len(further)) == (False, PUBLIC_KEYS.of_url("http://a.example/old"), 1)
    failure = Failure(IgnoreRequest())
    failure.request = Request(  # type: ignore[attr-defined]
        "http://a.example/x", cb_kwargs={"walk": 1, "step": 1}
    )
    [item] = spider.ended(failure)
    assert (item["is_page"], item["url"]) == (False, "http://a.example/x")


@pytest.mark.parametrize(
    "arguments", [{"walks": "many"}, {"walks": 0}, {"walks": 10**9}, {"restart": 0}, {"restart": 2}, {"restart": "nan"}]
)
def test_wrong_arguments_are_told(arguments: dict[str, Any]) -> None:
    """Before anything is fetched."""
    assert "walks" in str(new_spider(**arguments).wrong_arguments)
