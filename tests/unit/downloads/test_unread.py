"""A page that is not read is counted, and logged: the first of each reason, and all at the end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import Request, signals

from bigcrawl.downloads.unread import unread_of
from tests.unit.downloads.crawlers import new_crawler

if TYPE_CHECKING:
    import pytest


def test_first_page_of_a_reason_is_logged_and_all_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever counts; what is no page, a closed connection, is counted alone."""
    crawler = new_crawler()
    first, second = unread_of(crawler), unread_of(crawler)
    assert first is second
    with caplog.at_level(logging.INFO):
        for number in range(3):
            first.record_unread(Request(f"http://a.example/{number}"), "size")
        second.record_unread(Request("http://a.example/p"), "page-links")
        second.record_unread(None, "connection-age")
        asyncio.run(crawler.signals.send_catch_log_async(signals.spider_closed, spider=None, reason="finished"))
    lines = [record.getMessage() for record in caplog.records if record.name == "bigcrawl.downloads.unread"]
    assert [line.split()[0] for line in lines[:-1]] == ["http://a.example/0", "http://a.example/p"]
    assert lines[-1] == "not read, or only in part, by limit: size 3, page-links 1"
    assert crawler.stats is not None
    found = {key: value for key, value in crawler.stats.get_stats().items() if "limits" in key}
    assert found == {"bigcrawl/limits/size": 3, "bigcrawl/limits/page-links": 1, "bigcrawl/limits/connection-age": 1}
