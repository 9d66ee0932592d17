"""How another crawler made its fingerprints is seen by what waits there, or said to be assumed."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.scrapy_fingerprint import SCRAPY, SCRAPY_REDIS, fingerprint_of
from bigcrawl_foreign.fingerprint_set import FetchedPrints

FETCHED, WAITING = "http://a.example/1", "http://a.example/2"
REMEDY = "move it away"


class Sender:
    """Notes what would be kept, as `RequestSender.keep_fetched` does."""

    def __init__(self) -> None:
        self.scheme = ""

    async def keep_fetched(self, scheme: str, _known: Any, _waiting: Any, *, is_certain: bool) -> str:
        self.scheme = scheme if is_certain or not self.scheme else self.scheme
        return self.scheme


def kept(sender: Sender, scheme: str, *waiting: dict[str, Any]) -> list[str]:
    """Import fingerprints made in this way of two URLs, of which some wait. Return what is remarked."""
    known = np.sort(np.array([fingerprint_of(scheme, url) for url in (FETCHED, WAITING)], dtype=np.uint64))
    prints = FetchedPrints(known)
    for fields in waiting:
        prints.record_waiting(fields)
    to: Any = sender
    return asyncio.run(prints.store_prints(to, "requests.seen", SCRAPY, REMEDY))


def test_way_is_seen_by_what_waits() -> None:
    """And not by where they come from; entries that are odd do not count."""
    sender = Sender()
    odd: list[dict[str, Any]] = [{}, {"url": 1}, {"url": FETCHED, "method": 7}, {"url": WAITING, "body": "text"}]
    assert kept(sender, SCRAPY_REDIS, {"url": WAITING}, *odd) == []
    assert sender.scheme == SCRAPY_REDIS


def test_way_is_assumed_and_told_if_nothing_waits() -> None:
    """It is the likely one; or that of an earlier import, which showed it."""
    sender = Sender()
    [remark] = kept(sender, SCRAPY)
    assert "scrapy is assumed" in remark
    assert sender.scheme == SCRAPY
    sender.scheme = SCRAPY_REDIS
    [remark] = kept(sender, SCRAPY)
    assert "scrapy-redis is assumed" in remark


def test_fingerprints_of_another_kind_are_refused() -> None:
    """With the remedy of where they come from, and nothing is kept."""
    sender = Sender()
    with pytest.raises(ConfigError, match=f"without them, {REMEDY}"):
        kept(sender, SCRAPY, {"url": "http://a.example/unknown"})
    assert sender.scheme == ""
