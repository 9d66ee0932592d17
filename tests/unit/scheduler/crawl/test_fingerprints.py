"""Fingerprints in Redis: those that were added and not removed are there, and no others."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.fetched_elsewhere import FINGERPRINTS
from bigcrawl.scheduler.crawl.fingerprints import Fingerprints, forget_urls
from bigcrawl.url.scrapy_fingerprint import fingerprint_of

if TYPE_CHECKING:
    import numpy.typing as npt


def prints(*numbers: int) -> npt.NDArray[np.uint64]:
    return np.array(numbers, dtype=np.uint64)


def test_what_is_there_is_what_was_added_and_not_removed(redis_url: str, crawl_name: str) -> None:
    """In any order, twice, over several changes; also the least and the largest, and neighbours in a bucket."""
    dice = random.Random(7)
    numbers = [dice.getrandbits(64) for _ in range(3_000)]
    edges = [0, 1, (1 << 47) - 1, 1 << 47, (1 << 64) - 1]
    kept, removed = [*numbers[:2_000], *edges[:3]], [*numbers[2_000:], *edges[3:]]

    async def scenario() -> None:
        client = RedisClient(redis_url)
        made = Fingerprints(client, crawl_name)
        assert await made.have([1, 2]) == [False, False]
        assert await made.update(prints(*kept, *removed, kept[0]), prints(*removed)) == len(set(kept))
        assert await made.have(kept + removed) == [True] * len(kept) + [False] * len(removed)
        await made.update(prints(*removed[:10]), prints(*kept[:10]))
        await made.update(prints(*removed[:10]), prints(*kept[:10]))
        assert await made.have(kept + removed) == (
            [False] * 10 + [True] * (len(kept) - 10) + [True] * 10 + [False] * (len(removed) - 10)
        )
        await client.close()

    asyncio.run(scenario())


def test_urls_are_forgotten_by_hand(redis_url: str, crawl_name: str) -> None:
    """In the crawl's way to make fingerprints; of a crawl that was not imported, nothing is written."""
    urls = ["http://a.example/?b=1&a=2", "http://a.example/"]

    async def scenario() -> None:
        client = RedisClient(redis_url)
        made, keys = Fingerprints(client, crawl_name), CrawlKeys(crawl_name)
        known = [fingerprint_of("scrapy", url) for url in urls]
        await forget_urls(client, crawl_name, urls)
        assert not await client.command("EXISTS", keys.fingerprints)
        await made.update(prints(*known), prints())
        await client.command("HSET", keys.control, FINGERPRINTS, "scrapy")
        await forget_urls(client, crawl_name, urls[:1])
        assert await made.have(known) == [False, True]
        await client.close()

    asyncio.run(scenario())
