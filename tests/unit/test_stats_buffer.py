from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Spider, signals
from scrapy.utils.test import get_crawler

from bigcrawl import stats_buffer
from bigcrawl.stats_buffer import StatsBuffer, stats_wanted

if TYPE_CHECKING:
    import pytest
    from scrapy.crawler import Crawler

KEY, OTHER = "bigcrawl/warc/records", "bigcrawl/warc/bytes"


def told(crawler: Crawler, key: str) -> int:
    assert crawler.stats is not None
    value = crawler.stats.get_value(key, 0)
    assert isinstance(value, int)
    return value


def test_counts_reach_the_stats_once_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once for the first, then not before a second has gone; nothing is counted twice."""
    now = [100.0]
    monkeypatch.setattr(stats_buffer, "monotonic", lambda: now[0])
    crawler = get_crawler(Spider)
    buffer = StatsBuffer(crawler)
    buffer.inc_value(KEY)
    assert told(crawler, KEY) == 1
    buffer.inc_value(KEY, 4)
    buffer.inc_value(OTHER, 7)
    now[0] += 0.9
    buffer.inc_value(KEY)
    assert (told(crawler, KEY), told(crawler, OTHER)) == (1, 0)
    now[0] += 0.1
    buffer.inc_value(KEY)
    assert (told(crawler, KEY), told(crawler, OTHER)) == (7, 7)


def test_stats_are_complete_when_the_spider_has_closed() -> None:
    """What is still waiting is handed on with the spider's end; two buffers of one key add up."""
    crawler = get_crawler(Spider)
    first, second = StatsBuffer(crawler), StatsBuffer(crawler)
    for buffer in first, second, first, second:
        buffer.inc_value(KEY, 10)
    crawler.signals.send_catch_log(signals.spider_closed)
    assert told(crawler, KEY) == 40


def test_stats_are_up_to_date_for_who_is_about_to_read_them() -> None:
    """After the last page of a crawl nothing more may be counted for hours."""
    crawler = get_crawler(Spider)
    buffer = StatsBuffer(crawler)
    for _ in range(3):
        buffer.inc_value(KEY)
    crawler.signals.send_catch_log(stats_wanted)
    assert told(crawler, KEY) == 3


def test_a_count_of_nothing_makes_the_key_known() -> None:
    """As with Scrapy's own method: a crawl without links says that it found none."""
    crawler = get_crawler(Spider)
    buffer = StatsBuffer(crawler)
    buffer.inc_value(KEY, 0)
    buffer.flush()
    assert crawler.stats is not None
    assert crawler.stats.get_value(KEY) == 0
