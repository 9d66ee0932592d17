"""Requests that are not for the web: those of the start go to the project's handlers; pages cannot name local files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.integration.test_items import SETTINGS
from tests.support.crawling.plain_project import Answer, NotedSite, PlainProject
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
from scrapy import Request
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from scrapy.utils.sitemap import Sitemap
from bigcrawl.links import Links


class OwnHandler:
    lazy = True
    tries = 0

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    async def download_request(self, request):
        self.tries += 1
        return Response(request.url, status=503 if self.tries == 1 else 200, body=b"of a handler", request=request)

    async def close(self):
        pass


class Plain(CrawlSpider):
    name = "plain"
    rules = (Rule(LinkExtractor(deny_extensions=()), callback="parse_page", errback="failed", follow=True),)

    async def start(self):
        for url in self.urls.split():
            yield Request(url)

    def parse_start_url(self, response):
        return self.parse_page(response)

    def parse_page(self, response):
        yield {"url": response.url, "status": response.status, "body": response.body.decode()}
        if "sitemap" in response.url:
            yield from (Request(entry["loc"], self.parse_page) for entry in Sitemap(response.body))
        elif "feed" in response.url:
            yield from (Request(link, self.parse_page) for link in response.xpath("//link/text()").getall())
        elif "page" in response.url:
            yield Links.from_page(response, callback="parse_page")
            yield from response.follow_all(css="a", callback=self.parse_page, meta=response.meta)

    def failed(self, failure):
        yield {"url": failure.request.url, "error": type(failure.value).__name__}
"""


class Schemes(PlainProject):
    source = SOURCE


def test_files_are_read_for_start_requests_only(tmp_path: Path) -> None:
    """Not for links of pages, redirects, refreshes, sitemaps and feeds; one line says what is dropped."""
    (tmp_path / "secret").write_text("SECRET")
    (tmp_path / "given").write_text("given by hand")
    planted = f"file://{tmp_path}/secret"
    html = {"Content-Type": "text/html"}
    answers = {
        "/robots.txt": Answer(404),
        "/page": Answer(body=f'<a href="{planted}">x</a><a href="own://linked/">y</a>'.encode(), headers=html),
        "/redirect": Answer(301, headers={"Location": planted}),
        "/refresh": Answer(body=f'<meta http-equiv=refresh content="0; url={planted}">'.encode(), headers=html),
        "/sitemap.xml": Answer(body=f"<urlset><url><loc>{planted}</loc></url></urlset>".encode()),
        "/feed": Answer(body=f"<rss><link>{planted}</link></rss>".encode(), headers={"Content-Type": "text/xml"}),
    }
    settings = {**SETTINGS, "DOWNLOAD_HANDLERS": {"own": "plain.spiders.OwnHandler"}, "BIGCRAWL_PROGRESS_SECONDS": 0}
    with no_strays_below(tmp_path), NotedSite(answers) as site, Schemes(tmp_path / "project", **settings) as project:
        pages = [site.url("127.0.0.2", path) for path in answers if path != "/robots.txt"]
        log = project.run(*pages, f"file://{tmp_path}/given", "own://started/")
        found = project._items.read_text()
        assert "given by hand" in found
        assert found.count("of a handler") == 1, "with its retry"
        assert "SECRET" not in found
        assert "own://linked" not in found.replace(answers["/page"].body.decode().replace('"', '\\"'), "")
        assert log.count("dropped: ") == 2, "one line for each scheme"
        handled: Any = {"BIGCRAWL_HANDLED_SCHEMES": "own", "BIGCRAWL_CRAWL": "other"}
        project.run(pages[0], **handled)
        assert project._items.read_text().count("of a handler") == 1
        assert "SECRET" not in project._items.read_text()
