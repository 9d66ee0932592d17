"""Links within a host are urgent and know their depth; all others are entries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import HtmlResponse

from bigcrawl.features.whole_hosts.spider_middlewares import DEPTH_KEY, WholeHostLinks
from bigcrawl.links import Links
from bigcrawl.scheduler.queues.front_queues import URGENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PAGE = "http://a.example/dir/page"


def passed(output: Any, depth: int = 0, *, depth_max: int = 2, **meta: Any) -> list[Any]:
    request = Request(PAGE, meta=meta | ({DEPTH_KEY: depth} if depth else {}))

    async def given() -> AsyncIterator[Any]:
        yield output

    async def found() -> list[Any]:
        response = HtmlResponse(PAGE, request=request)
        return [one async for one in WholeHostLinks(depth_max).process_spider_output(response, given())]

    return asyncio.run(found())


def test_links_are_parted_by_host() -> None:
    """Relative ones too; what is of the whole page is in the first batch, and said once."""
    urls = ["/near", "http://b.example/", "http://A.example:80/up", "//c.example/x", "http://[broken"]
    links = Links(urls, base=PAGE, metas=(("robots", "none"),), nofollow=["below", "http://b.example/no"], priority=3)
    inside, entries = passed(links)
    assert (inside.urls, inside.nofollow) == (["/near", "http://A.example:80/up"], ["below"])
    assert (inside.priority, inside.meta, inside.metas) == (URGENT + 3, {DEPTH_KEY: 1}, links.metas)
    assert entries.urls == ["http://b.example/", "//c.example/x", "http://[broken"]
    assert (entries.priority, entries.meta, entries.metas) == (3, None, ())
    assert entries.nofollow == ["http://b.example/no"]


def test_depth_is_counted_from_the_entry_to_the_limit() -> None:
    """Beyond it, links are entries; a copied depth is not passed on, and a redirect into the host begins it."""
    links = Links([PAGE + "/more"], canonical=True, meta={DEPTH_KEY: 7, "own": 1})
    assert [one.meta for one in passed(links, 1)] == [{DEPTH_KEY: 2, "own": 1}]
    assert [(one.meta, one.priority) for one in passed(links, 2)] == [({"own": 1}, 0)]
    assert [one.meta for one in passed(links, 2, redirect_urls=["http://b.example/"])] == [{DEPTH_KEY: 1, "own": 1}]
    assert passed(links, depth_max=0)[0].priority == 0


def test_requests_are_treated_alike_and_items_pass() -> None:
    near, far = Request(PAGE + "?", priority=1), Request("http://b.example/", meta={DEPTH_KEY: 2})
    assert passed(near) == [near]
    assert (near.meta, near.priority) == ({DEPTH_KEY: 1}, URGENT + 1)
    assert passed(far) == [far]
    assert (far.meta, far.priority) == ({}, 0)
    assert passed({"item": 1}) == [{"item": 1}]


def test_target_of_a_redirect_to_another_host_is_an_entry() -> None:
    """One within the host stays where it is."""
    for url, expected in (("http://b.example/", ({}, 2)), (PAGE + "/there", ({DEPTH_KEY: 1}, URGENT + 2))):
        target = Request(url, priority=URGENT + 2, meta={DEPTH_KEY: 1, "redirect_urls": [PAGE]})
        WholeHostLinks(2).request_scheduled(target)
        del target.meta["redirect_urls"]
        assert (target.meta, target.priority) == expected
