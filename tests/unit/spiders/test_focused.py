"""The focused spider: what a page and its links are worth."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy.http import HtmlResponse, Response

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.spiders.focused import FocusedSpider

SEED = "http://a.example/"
ABOUT = "bees and honey, bees and more honey. "
LINKS = "<a href=/1>on bees</a><a href=/2>more</a><a href=/honey.html>here</a>"
URLS = [f"{SEED}{name}" for name in ("1", "2", "honey.html")]


def spider(**arguments: Any) -> FocusedSpider:
    return FocusedSpider(seeds=SEED, **{"topic": "bees honey", **arguments})


def parsed(
    text: str, *, by: FocusedSpider | None = None, status: int = 200, **state: Any
) -> tuple[list[Any], Any, Any]:
    """The items of a page, the level of each link, and what its links carry."""

    async def collect() -> list[Any]:
        headers = {"Content-Type": "text/html"}
        page = HtmlResponse(SEED, status, headers, body=text.encode())
        return [output async for output in (by or spider()).parse(page, **state)]

    outputs = asyncio.run(collect())
    batches = [output for output in outputs if isinstance(output, Links)]
    levels = {url: level_of(batch.priority) for batch in batches for url in batch.urls}
    assert len({str(batch.cb_kwargs) for batch in batches}) == 1
    return [output for output in outputs if output not in batches], levels, batches[0].cb_kwargs


def test_a_page_about_the_topic_is_an_item_and_lifts_its_links() -> None:
    """Most of all those whose anchor or URL speaks of the topic, too."""
    items, levels, state = parsed(ABOUT + LINKS, hops=1)
    assert items == [{"url": SEED, "score": pytest.approx(1 - 0.5**5, abs=1e-3)}]
    assert levels == dict(zip(URLS, (4, 3, 4), strict=True))
    assert state == {"lead": items[0]["score"], "hops": 0}


def test_a_tunnel_has_an_end() -> None:
    """Each page that is not about the topic halves what leads on; behind the last, only a link's own words count."""
    found = [parsed(LINKS, lead=1.0, hops=hops) for hops in (0, 1, 2)]
    assert [items for items, _, _ in found] == [[], [], []]
    assert [levels[URLS[1]] for _, levels, _ in found] == [2, 2, 0]
    assert [levels[URLS[0]] for _, levels, _ in found] == [3, 3, 2]
    assert [state["hops"] for _, _, state in found] == [1, 2, 3]
    _, levels, _ = parsed(LINKS, by=spider(tunnel="0"), lead=1.0)
    assert levels[URLS[1]] == 0


def test_an_error_page_is_no_item() -> None:
    """Its links count."""
    items, levels, _ = parsed(ABOUT + LINKS, status=404)
    assert (items, len(levels)) == ([], 3)


def test_what_is_no_page_has_no_links() -> None:
    """As with the broad spider."""

    async def collect() -> list[Any]:
        return [output async for output in spider().parse(Response(SEED, body=b"bees honey bees"))]

    assert asyncio.run(collect()) == []


def test_a_scorer_of_ones_own_takes_the_place_of_a_topic() -> None:
    """It is asked for the page, then for all links at once."""
    asked: list[list[str]] = []

    def scorer(texts: list[str]) -> list[float]:
        asked.append(texts)
        return [1.0 if "more" in text else 0.0 for text in texts]

    _, levels, _ = parsed("more" + LINKS, by=spider(topic="", scorer=scorer))
    assert asked[2:] == [
        ["more on bees more here"],
        ["on bees a example 1", "more a example 2", "here a example honey html"],
    ]
    assert levels == dict(zip(URLS, (3, 4, 3), strict=True))


@pytest.mark.parametrize("arguments", [{"topic": ""}, {"scorer": "no.such"}, {"threshold": "much"}, {"tunnel": "1.5"}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    """At the start of the crawl, with what to write."""

    async def begin() -> None:
        async for _ in made.start():
            raise AssertionError("nothing is queued")

    made = spider(**arguments)
    assert made.wrong_arguments is not None
    with pytest.raises(ConfigError) as raised:
        asyncio.run(begin())
    assert raised.value is made.wrong_arguments
