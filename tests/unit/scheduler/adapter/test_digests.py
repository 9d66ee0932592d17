"""What tells spiders and their code apart."""

from __future__ import annotations

from scrapy import Spider

from bigcrawl.scheduler.adapter.digests import start_digest


def test_digest_tells_start_requests_apart_by_spider_and_arguments() -> None:
    """The same spider with the same arguments starts once; others start too."""
    spiders = [Spider("a"), Spider("b"), Spider("a", seeds="x"), Spider("a", seeds="y")]
    assert len({start_digest(spider) for spider in spiders}) == 4
    assert start_digest(Spider("a", seeds="x")) == start_digest(Spider("a", seeds="x"))
