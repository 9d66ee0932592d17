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


def test_sitemap_that_grows_too_much_is_none() -> None:
    """Beyond a megabyte by the setting for all bodies; a setting of the project counts."""
    body = gzip.compress(SITEMAP + b" " * (3 << 20))

    def outputs(ratio: int) -> list[Any]:
        crawler = get_crawler(SitemapSpider, {"BIGCRAWL_DECOMPRESSION_RATIO_MAX": ratio})
        return asyncio.run(outputs_of(SitemapSpider.from_crawler(crawler).parse_sitemap(Response(URL, body=body))))

    assert len(body) < (3 << 20) / 250
    assert outputs(250) == []
    assert len(outputs(100_000)) == 1
