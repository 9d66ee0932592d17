"""What another crawler stored is queued, or told; a request keeps what it has."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.settings import Settings

from bigcrawl.commands.moving.importing import RequestSender
from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.adapter.request_codec import ENTRY, decode_request
from bigcrawl.scheduler.crawl.fetched_elsewhere import FINGERPRINTS
from bigcrawl.url.domain import PublicSuffixes
from bigcrawl.url.scrapy_fingerprint import SCRAPY, SCRAPY_REDIS
from tests.support.keys import KEYS


class Sent:
    """In the place of the sender to the inboxes."""

    def __init__(self) -> None:
        self.urls: list[Any] = []

    async def add_url(self, partition: int, url: Any) -> None:
        assert 0 <= partition < 8
        self.urls.append(url)


class ShopSpider(Spider):
    name = "shop"

    def parse_item(self, response: Any) -> None:
        """Names a callback."""


def sent_by(*stored: dict[str, Any], classes: tuple[str, ...] = ()) -> tuple[RequestSender, Sent]:
    crawl: Any = SimpleNamespace(
        config=read_config(Settings()), url_keys=KEYS, partitions=8, suffixes=PublicSuffixes.bundled(private=False)
    )
    sender, sent = RequestSender(crawl, classes), Sent()
    sender._inboxes = sent  # type: ignore[assignment]

    async def send() -> None:
        for number, fields in enumerate(stored):
            await sender.send_request(f"request {number}", fields, f"entry {number}")

    asyncio.run(send())
    return sender, sent


def test_request_is_made_again_as_it_was() -> None:
    """By its spider, with all that it had."""
    spider = ShopSpider()
    given = FormRequest(
        "http://a.example/é?b=1",
        formdata={"a": "b"},
        callback=spider.parse_item,
        headers={"X": ["1", "2"]},
        cookies={"c": "d"},
        meta={"depth": 3, "pair": (1, 2)},
        cb_kwargs={"e": 5},
        priority=7,
        flags=["f"],
    )
    sender, sent = sent_by(given.to_dict(spider=spider))
    assert (sender.sent, sender.left_out) == (1, 0)
    [url] = sent.urls
    assert (url.host, url.priority, url.flags & 1) == ("a.example", 7, 0)
    made = decode_request(url.body, spider)
    assert type(made) is FormRequest
    assert made.to_dict(spider=spider) == given.to_dict(spider=spider)


def test_dont_filter_is_queued_whatever_was_seen_but_once() -> None:
    """Its key is that of its entry; without `dont_filter`, that of its URL."""
    plain, again = Request("http://a.example/").to_dict(), Request("http://a.example/", dont_filter=True).to_dict()
    _, first = sent_by(plain, again, again)
    _, second = sent_by(plain, again, again)
    keys = [url.key for url in first.urls]
    assert keys == [url.key for url in second.urls]
    assert len(set(keys)) == 3
    assert keys[0] == KEYS.of_url("http://a.example/")
    assert decode_request(first.urls[1].body, ShopSpider()).meta[ENTRY] == "entry 1"


@pytest.mark.parametrize(
    "fields",
    [
        *({}, {"url": None}, {"url": 5}, {"url": "mailto:a@a.example"}, {"url": "http://a.example/", "meta": [1]}),
        *({"url": "http://a.example/", "priority": "x"}, {"url": "http://a.example/", "priority": float("inf")}),
        *({"url": "http://a.example/", "cookies": [1]}, {"url": "http://a.example/", "body": "text"}),
        {"url": "http://a.example/", "cb_kwargs": {1: 2}},
        {"url": "http://a.example/", "_class": "os.system"},
        {"url": "http://a.example/" + "a" * 10_000},
        {"url": "http://a.example/", "body": b"x" * (5 << 20)},
    ],
)
def test_what_cannot_be_queued_is_told(fields: dict[str, Any]) -> None:
    """In one line, of bounded length; all else goes on."""
    sender, sent = sent_by(fields, {"url": "http://a.example/"})
    assert len(sent.urls) == sender.sent == sender.left_out == 1
    [line] = sender.lines()
    assert line.startswith("left out: request 0: ")
    assert len(line) < 400
    assert "\n" not in line


def test_class_of_requests_is_allowed_by_name() -> None:
    """Scrapy's own are."""
    fields = {"url": "http://a.example/", "_class": "shop.requests.ShopRequest"}
    assert sent_by(fields)[0].left_out == 1
    assert sent_by(fields, classes=("shop.requests.ShopRequest",))[0].sent == 1


class Redis:
    """Holds one field, the scheme of fingerprints."""

    def __init__(self, scheme: bytes | None = None) -> None:
        self.scheme = scheme

    async def command(self, name: str, _key: str, field: str, *values: str) -> Any:
        if field == FINGERPRINTS and name == "HSET":
            self.scheme = values[0].encode()
        return self.scheme if field == FINGERPRINTS else [None]


def keep(redis: Redis, *, is_certain: bool) -> str:
    crawl: Any = SimpleNamespace(client=redis, config=read_config(Settings()), crawl_keys=CrawlKeys("test"))
    none = np.empty(0, np.uint64)
    return asyncio.run(RequestSender(crawl).keep_fetched(SCRAPY, none, none, is_certain=is_certain))


def test_scheme_of_fingerprints_is_that_of_the_first_import() -> None:
    """A certain other one is refused, and the first one stays."""
    redis = Redis()
    assert keep(redis, is_certain=False) == SCRAPY
    redis = Redis(SCRAPY_REDIS.encode())
    assert keep(redis, is_certain=False) == SCRAPY_REDIS
    with pytest.raises(ConfigError, match="import into another crawl"):
        keep(redis, is_certain=True)
    assert redis.scheme == SCRAPY_REDIS.encode()
