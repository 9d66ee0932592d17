"""A failed crawl leaves the mark that Scrapy's command turns into exit status 1."""

from __future__ import annotations

import pytest
from scrapy import Spider, signals
from scrapy.exceptions import CloseSpider
from scrapy.utils.test import get_crawler

from bigcrawl.extensions.stop import ExitStatus
from bigcrawl.scheduler.adapter.registry import mark_failed


def test_good_crawl_keeps_its_spider() -> None:
    """Nothing failed: the extension changes nothing."""
    crawler = get_crawler(Spider)
    spider = crawler.spider = Spider(name="good")
    extension = ExitStatus.from_crawler(crawler)
    extension.spider_opened()
    crawler.signals.send_catch_log(signals.engine_stopped)
    assert crawler.spider is spider


def test_failed_crawl_loses_it_when_the_engine_has_stopped() -> None:
    """Scrapy counts a crawler without a spider at the end as failed."""
    crawler = get_crawler(Spider)
    crawler.spider = Spider(name="bad")
    extension = ExitStatus.from_crawler(crawler)
    mark_failed(crawler)
    with pytest.raises(CloseSpider) as closed:
        extension.spider_opened()
    assert closed.value.reason == "bigcrawl_cannot_start"
    crawler.signals.send_catch_log(signals.engine_stopped)
    assert crawler.spider is None
