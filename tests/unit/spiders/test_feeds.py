"""The feeds spider: feeds lead to their entries, pages to their feeds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy.http import HtmlResponse, Response, TextResponse

from bigcrawl.links import Links
from bigcrawl.spiders import feeds as feeds_module
from bigcrawl.spiders.feeds import FeedsSpider
from tests.unit.spiders.test_broad import outputs_of

URL = "http://a.example/blog/feed.xml"
NOW = datetime.now(UTC).isoformat()
FEED = f"""<feed><entry><link href="old"/><title>Old</title><updated>2001-01-01</updated></entry>
<entry><link href="new"/><title>New</title><updated>{NOW}</updated></entry>
<entry><link href="mailto:x@a.example"/></entry></feed>""".encode()


def outputs_for(response: Response) -> tuple[list[dict[str, Any]], list[Links]]:
    """Items and links."""
    outputs = asyncio.run(outputs_of(FeedsSpider().parse(response)))
    return [one for one in outputs if isinstance(one, dict)], [one for one in outputs if isinstance(one, Links)]


def test_feed_leads_to_its_entries_the_newest_first() -> None:
    """Each is an item, and its page goes to a callback of its own; what is no page is left out."""
    items, batches = outputs_for(TextResponse(URL, body=FEED))
    assert items == [
        {"url": "http://a.example/blog/old", "title": "Old", "published": "2001-01-01", "feed": URL},
        {"url": "http://a.example/blog/new", "title": "New", "published": NOW, "feed": URL},
    ]
    assert [(links.urls, links.priority) for links in batches] == [
        (["http://a.example/blog/new"], 6),
        (["http://a.example/blog/old"], 0),
    ]
    assert {links.callback for links in batches} == {"parse_entry"}
    assert list(FeedsSpider().parse_entry(Response("http://a.example/"))) == []


def test_page_leads_to_its_feeds() -> None:
    """And to nothing else."""
    body = b'<html><a href="/x">x</a><link rel=alternate type="application/rss+xml" href="/feed"></html>'
    items, [links] = outputs_for(HtmlResponse("http://a.example/", body=body, headers={"Content-Type": "text/html"}))
    assert (items, links.urls, links.base, links.callback) == ([], ["/feed"], "http://a.example/", "parse_feed")


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("body", [b"", b"<feed>", b"\x00\xff<rss", b"<rss><item><link>x</link></item>"])
def test_what_is_no_feed_leads_nowhere(body: bytes, status: int) -> None:
    """Nor does an error page that looks like one."""
    items, batches = outputs_for(Response(URL, body=body, status=status))
    is_read = status == 200 and body.startswith(b"<rss>")
    assert len(items) == is_read
    assert [url for links in batches for url in links.urls] == ["http://a.example/blog/x"] * is_read


def test_entries_of_a_feed_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones count."""
    monkeypatch.setattr(feeds_module, "FEED_ENTRIES_MAX", 2)
    items, batches = outputs_for(Response(URL, body=b"<rss>" + b"<item><link>x</link></item>" * 9))
    assert len(items) == 2
    assert batches[-1].left_out.limit == "listing-entries"
