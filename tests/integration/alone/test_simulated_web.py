"""A plain project on a simulated web whose answer is known: complete, once, and polite by the origin's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.crawling.plain_project import QUEUE, ROBOTS, THROTTLE, PlainProject
from tests.support.crawling.verdicts import assert_complete

if TYPE_CHECKING:
    from pathlib import Path

DELAY_S = 0.1

# The links are bigcrawl's, in canonical form: Scrapy's dupe filter takes two spellings of a page for two pages.
LINKED = """
import scrapy

from bigcrawl.links import Links


class Plain(scrapy.Spider):
    name = "plain"
    handle_httpstatus_all = True

    async def start(self):
        for url in self.urls.split():
            yield scrapy.Request(url)

    def parse(self, response):
        if isinstance(response, scrapy.http.HtmlResponse):
            for url in Links.from_page(response).urls:
                yield scrapy.Request(url)
"""


def test_crawl_is_complete_and_polite(tmp_path: Path) -> None:
    """Every page that may be fetched is, once; hosts have one connection, their delay, and their rules."""
    settings = {
        "DOWNLOADER_MIDDLEWARES": {**ROBOTS, **THROTTLE},
        "SCHEDULER_PRIORITY_QUEUE": QUEUE,
        "TWISTED_DNS_RESOLVER": "bigcrawl.middlewares.dns.Resolver",
        "BIGCRAWL_HOST_DELAY": DELAY_S,
        "BIGCRAWL_SERVER_DELAY": 0,
        "USER_AGENT": "bigcrawl/1.0 (+http://127.0.0.1/)",
        "CONCURRENT_REQUESTS": 32,
    }
    with SimulatedWeb(tmp_path / "web", hosts=40, pages=6) as web, PlainProject(tmp_path, **settings) as project:
        (tmp_path / "plain" / "spiders" / "__init__.py").write_text(LINKED)
        log = project.run(*web.seeds, timeout_s=200, LOG_LEVEL="INFO")
        report = web.report(delay_ms=round(DELAY_S * 1000))
        assert len(web.exchanges()) > 200
    assert "Traceback" not in log
    assert_complete(report)
