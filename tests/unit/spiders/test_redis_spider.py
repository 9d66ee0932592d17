"""What a spider makes of an entry, and whom its settings refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy_redis.spiders import RedisSpider as ScrapyRedisSpider

from bigcrawl.exceptions import ConfigError
from bigcrawl.spiders import redis_spider
from bigcrawl.spiders.redis_spider import RedisCrawlSpider, RedisSpider


def made(data: bytes) -> Request:
    request = RedisSpider("test").make_request_from_data(data)
    assert isinstance(request, Request)
    return request


@pytest.mark.parametrize(
    "entry",
    [
        b"http://a.example/x?b=1&a=2#f",
        b'{"url": "http://a.example/"}',
        b'{"url": "http://a.example/", "method": "post", "meta": {"job": [1, "x"]}}',
        b'{"url": "http://a.example/?x=1", "meta": {}, "job": "7", "tags": ["a", "b"]}',
        b'{"url": "http://a.example/", "method": "POST", "job": "7"}',
    ],
)
def test_entry_becomes_the_request_that_scrapy_redis_makes(entry: bytes) -> None:
    """URL, method, body, meta and headers, whatever the class."""
    theirs = ScrapyRedisSpider("test")
    theirs.redis_encoding = "utf-8"
    fields = ("url", "method", "body", "meta", "headers", "dont_filter", "callback", "priority")
    wanted = theirs.make_request_from_data(entry)
    assert [getattr(made(entry), name) for name in fields] == [getattr(wanted, name) for name in fields]


@pytest.mark.parametrize(
    "entry",
    [
        *(b"", b"no url", b"\xff\xfe", b"{", b"[]", b"{}", b'{"url": 5}', b'["http://a.example/"]'),
        *(b'{"url": ""}', b'{"url": "http://a.example/", "meta": 3}', b'{"url": "http://a.example/", "method": 1}'),
        b"[" * 100_000,
    ],
)
def test_bad_entry_is_an_error_that_is_caught(entry: bytes) -> None:
    """Never a request, and nothing worse than an exception."""
    with pytest.raises((ValueError, RecursionError)):
        made(entry)


def test_entry_is_read_in_the_spiders_encoding() -> None:
    """As `redis_encoding` says."""
    spider = RedisSpider("test", redis_encoding="latin-1")
    entry = json.dumps({"url": "http://a.example/é"}, ensure_ascii=False)
    assert spider.make_request_from_data(entry.encode("latin-1")).url == "http://a.example/%C3%A9"


@pytest.mark.parametrize("kind", [RedisSpider, RedisCrawlSpider])
def test_spider_waits_for_entries_unless_told_otherwise(kind: Any) -> None:
    """The crawl is not over when nothing is left to do; its own settings, and the command line, may say so."""
    settings = Settings()
    kind.update_settings(settings)
    assert settings["BIGCRAWL_CLOSE"] == "forever"
    own: Any = type("Own", (kind,), {"custom_settings": {"BIGCRAWL_CLOSE": "until-empty"}})
    own.update_settings(settings)
    assert settings["BIGCRAWL_CLOSE"] == "until-empty"


@pytest.mark.parametrize("value", ["many", 0, -1, [1]])
def test_number_that_is_none_is_named(value: object) -> None:
    """With what it must be."""
    with pytest.raises(ConfigError, match=r"redis_batch_size is .*: it must be a whole number of at least 1"):
        redis_spider._parse_number("redis_batch_size", value, 5, least=1)
