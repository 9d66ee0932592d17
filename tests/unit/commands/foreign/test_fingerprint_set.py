"""How another crawler made its fingerprints is seen by what waits there, or said to be assumed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bigcrawl.commands.foreign.fingerprint_set import FetchedPrints
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.fingerprints import FINGERPRINTS
from bigcrawl.url.scrapy_fingerprint import SCRAPY, SCRAPY_REDIS, fingerprint_of

FETCHED, WAITING = "http://a.example/1", "http://a.example/2"
REMEDY = "move it away"


class Redis:
    """Notes what would be kept."""

    def __init__(self) -> None:
        self.scheme: bytes | None = None

    async def command(self, name: str, _key: str, field: str, *values: str) -> Any:
        assert field == FINGERPRINTS
        if name == "HSET":
            self.scheme = values[0].encode()
        return self.scheme


def kept(monkeypatch: pytest.MonkeyPatch, redis: Redis, scheme: str, *waiting: dict[str, Any]) -> list[str]:
    """Import fingerprints made in this way of two URLs, of which some wait. Return what is remarked."""
    known = np.sort(np.array([fingerprint_of(scheme, url) for url in (FETCHED, WAITING)], dtype=np.uint64))
    prints = FetchedPrints(known)
    for fields in waiting:
        prints.note_waiting(fields)

    async def change(*_: object) -> None:
        pass

    module = "bigcrawl.commands.foreign.fingerprint_set"
    monkeypatch.setattr(f"{module}.Fingerprints", lambda *_: SimpleNamespace(change=change))
    monkeypatch.setattr(f"{module}.CrawlKeys", CrawlKeys)
    crawl: Any = SimpleNamespace(client=redis, config=SimpleNamespace(crawl=SimpleNamespace(name="test")))
    return asyncio.run(prints.keep(crawl, "requests.seen", SCRAPY, REMEDY))


def test_way_is_seen_by_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not by where they come from; entries that are odd do not count."""
    redis = Redis()
    odd: list[dict[str, Any]] = [{}, {"url": 1}, {"url": FETCHED, "method": 7}, {"url": WAITING, "body": "text"}]
    assert kept(monkeypatch, redis, SCRAPY_REDIS, {"url": WAITING}, *odd) == []
    assert redis.scheme == SCRAPY_REDIS.encode()


def test_way_is_assumed_and_told_if_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the likely one; or that of an earlier import, which showed it."""
    redis = Redis()
    [remark] = kept(monkeypatch, redis, SCRAPY)
    assert "scrapy is assumed" in remark
    assert redis.scheme == SCRAPY.encode()
    redis.scheme = SCRAPY_REDIS.encode()
    [remark] = kept(monkeypatch, redis, SCRAPY)
    assert "scrapy-redis is assumed" in remark


def test_fingerprints_of_another_kind_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the remedy of where they come from, and nothing is kept."""
    redis = Redis()
    with pytest.raises(ConfigError, match=f"without them, {REMEDY}"):
        kept(monkeypatch, redis, SCRAPY, {"url": "http://a.example/unknown"})
    assert redis.scheme is None
