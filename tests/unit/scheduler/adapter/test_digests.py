"""What tells spiders and their code apart."""

from __future__ import annotations

from scrapy import Spider

from bigcrawl.scheduler.adapter.digests import start_digest


def test_digest_tells_start_requests_apart_by_spider_and_arguments() -> None:
    """The same spider with the same arguments starts once; others start too."""
    spiders = [Spider("a"), Spider("b"), Spider("a", seeds="x"), Spider("a", seeds="y")]
    assert len({start_digest(spider) for spider in spiders}) == 4
    assert start_digest(Spider("a", seeds="x")) == start_digest(Spider("a", seeds="x"))


def test_digest_tells_start_urls_of_a_class_apart() -> None:
    """A list that was edited is run."""

    class Own(Spider):
        name = "a"
        start_urls = ["http://a.example/"]  # noqa: RUF012 - Scrapy's own way

    assert start_digest(Own()) != start_digest(Spider("a"))
    before = start_digest(Own())
    Own.start_urls = [*Own.start_urls, "http://b.example/"]
    assert start_digest(Own()) != before
