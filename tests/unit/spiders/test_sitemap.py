"""The sitemap spider: what sites list is followed, and nothing else."""

from __future__ import annotations

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.utils.test import get_crawler

from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.spiders.sitemap import SitemapSpider
from tests.unit.spiders.test_broad import PAGE, outputs_of

if TYPE_CHECKING:
    from bigcrawl.links import Links

URL = "http://a.example/s.xml"
SITEMAP = b"<urlset><url><loc>/1</loc></url></urlset>"


def followed(spider: BroadSpider, response: Response) -> list[Links]:
    return asyncio.run(outputs_of(spider.parse(response)))


def test_seed_may_be_a_sitemap() -> None:
    """For this spider, and for others that read sitemaps; a page of a site leads only to what its robots.txt names."""
    response = TextResponse(URL, body=SITEMAP, headers={"Content-Type": "application/xml"})
    for spider in (SitemapSpider(), BroadSpider(sitemaps=True)):
        [links] = followed(spider, response)
        assert (links.urls, links.callback, links.priority) == (["/1"], None, 0)
        met = response.replace(request=Request(URL, meta={"depth": 1}))
        assert followed(spider, met) == [], "one that a link led to may be any archive"
    assert followed(BroadSpider(), response) == []
    assert followed(SitemapSpider(), HtmlResponse("http://a.example/", body=PAGE)) == []
    assert hasattr(SitemapSpider(sitemaps=""), "parse_sitemap_urls"), "it always reads those of robots.txt"


def test_what_the_site_says_of_its_pages_is_their_priority() -> None:
    """The newest come first, among pages of the level raised."""
    today = datetime.now(UTC).date().isoformat().encode()
    body = b"<urlset>%s</urlset>" % b"".join(
        b"<url><loc>/%d</loc>%s</url>" % row
        for row in enumerate([b"", b"<lastmod>%s</lastmod>" % today, b"<priority>1.0</priority>"])
    )
    batches = asyncio.run(outputs_of(SitemapSpider().parse_sitemap(Response(URL, body=body))))
    assert [(links.urls, links.priority) for links in batches] == [(["/1"], 6), (["/2"], 3), (["/0"], 0)]


def test_what_the_site_says_of_changes_goes_with_its_pages() -> None:
    """Pages that change equally often are together; without a word, by how long ago they changed."""
    now = datetime.now(UTC)
    year_ago = (now - timedelta(days=400)).date().isoformat()
    rows = [("Daily", ""), ("x", ""), ("", year_ago), ("", "2999-01-01")]
    entries = [
        f"<url><loc>/{n}</loc><changefreq>{word}</changefreq><lastmod>{date}</lastmod></url>"
        for n, (word, date) in enumerate(rows)
    ]
    body = f"<urlset>{''.join(entries)}</urlset>".encode()
    batches = asyncio.run(outputs_of(SitemapSpider().parse_sitemap(Response(URL, body=body))))
    assert {links.changefreq: links.urls for links in batches} == {"yearly": ["/2"], "daily": ["/0"], "": ["/1", "/3"]}
    [modified] = [links.modified for links in batches if links.modified]
    assert list(modified) == ["http://a.example/2"]
    assert modified["http://a.example/2"] == pytest.approx(now.timestamp() - 399.5 * 86_400, abs=86_400)


def test_sitemap_may_be_a_text_or_a_feed() -> None:
    """sitemaps.org allows both; the dates of a feed are hints, too."""
    today = datetime.now(UTC).date().isoformat()
    feed = f"<feed><entry><link href='/1'/><updated>{today}</updated></entry></feed>".encode()
    for body, urls, priority in ((b"http://a.example/1\nhttp://a.example/2\n", ["/1", "/2"], 0), (feed, ["/1"], 6)):
        [links] = asyncio.run(outputs_of(SitemapSpider().parse_sitemap(Response(URL, body=body))))
        assert ([url.removeprefix("http://a.example") for url in links.urls], links.priority) == (urls, priority)


def test_sitemap_that_grows_too_much_is_none() -> None:
    """Beyond a megabyte by the setting for all bodies; a setting of the project counts."""
    body = gzip.compress(SITEMAP + b" " * (3 << 20))

    def outputs(ratio: int) -> list[Any]:
        crawler = get_crawler(SitemapSpider, {"BIGCRAWL_DECOMPRESSION_RATIO_MAX": ratio})
        return asyncio.run(outputs_of(SitemapSpider.from_crawler(crawler).parse_sitemap(Response(URL, body=body))))

    assert len(body) < (3 << 20) / 250
    [told] = outputs(250)
    assert (told.urls, told.left_out.limit) == ((), "listing-growth")
    [links] = outputs(100_000)
    assert (links.urls, links.left_out.limit) == (["/1"], "")


@pytest.mark.parametrize("body", [SITEMAP, b"<?xml version='1.0'?>" + SITEMAP, gzip.compress(SITEMAP)], ids=range(3))
def test_sitemap_may_be_called_html(body: bytes) -> None:
    """By servers that know no better; a page is one all the same."""
    for spider in (SitemapSpider(), BroadSpider(sitemaps=True)):
        [links] = followed(spider, HtmlResponse(URL, body=body, headers={"Content-Type": "text/html"}))
        assert links.urls == ["/1"]
    page = HtmlResponse(URL, body=b"<a href='/x'>x</a> <pre>&lt;urlset></pre>", headers={"Content-Type": "text/html"})
    [links] = followed(BroadSpider(sitemaps=True), page)
    assert links.urls == ["http://a.example/x"]


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (gzip.compress(SITEMAP)[:-20], "listing-packing"),
        (b"<urlset>" + b"<loc>/1</loc>" * 50_001, "listing-entries"),
        (b"<urlset>" + b"<a>" * 600_001 + b"<loc>/1</loc>", "listing-tags"),
        (b"http://a.example/1\n" * 50_001, "listing-entries"),
        (b"<rss>" + b"<a>" * (1 << 19) + b"<item><link>/1</link></item>", "listing-tags"),
        (b"<rss>" + b" " * (4 << 20) + b"<item><link>/1</link></item>", "listing-bytes"),
        (b"<html>", ""),
    ],
    ids=["packing", "entries", "tags", "lines", "feed", "feed of bytes", "page"],
)
def test_what_is_not_read_of_a_sitemap_has_a_reason(body: bytes, limit: str) -> None:
    """It comes last, with no URL."""
    batches = asyncio.run(outputs_of(SitemapSpider().parse_sitemap(Response(URL, body=body))))
    assert [links.left_out.limit for links in batches if links.left_out.limit] == ([limit] if limit else [])
    assert not any(links.left_out.limit for links in batches[:-1])


def test_alternates_are_followed_on_request() -> None:
    """By the attribute that Scrapy's spider has; they change when their page does."""
    links = "".join(f'<x:link rel="alternate" hreflang="{tag}" href="/{tag}"/>' for tag in ("de", "fr"))
    more = '<x:link rel="canonical" hreflang="de" href="/no"/><x:link rel="alternate" media="print" href="/no"/>'
    entry = f"<url><loc>/1</loc><lastmod>2020-01-01</lastmod>{links}{more}</url>"
    body = f'<urlset xmlns:x="http://www.w3.org/1999/xhtml">{entry}</urlset>'.encode()

    def urls(**arguments: Any) -> list[str]:
        spider = SitemapSpider(**arguments)
        [found] = asyncio.run(outputs_of(spider.parse_sitemap(Response(URL, body=body))))
        assert found.modified.keys() == {f"http://a.example{url}" for url in found.urls}
        return list(found.urls)

    assert urls() == urls(sitemap_alternate_links="0") == ["/1"]
    assert urls(sitemap_alternate_links="1") == ["/1", "/de", "/fr"]


def test_entries_of_a_feed_that_is_a_sitemap_have_its_base() -> None:
    """XML Base."""
    body = b'<feed xml:base="http://b.example/x/"><entry><link href="1"/></entry></feed>'
    [links] = asyncio.run(outputs_of(SitemapSpider().parse_sitemap(Response(URL, body=body))))
    assert links.urls == ["http://b.example/x/1"]
