"""What `scrapy frontier explain` knows of a crawl's URLs, asked for many at a time."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.looking.explain import look_up, said_of
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.scheduler.partition.manifest_log import decode_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.config import Config
    from tests.support.crawling.crawls import Crawl

PARTITIONS_MAX = 256


def explained(crawl: Crawl, urls: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What is said of each URL; the crawl may run or have ended. Cost: some milliseconds each.

    A partition's manifest is read for each URL, as by `scrapy frontier explain`, and its bytes are decoded once.
    """
    config = crawl.config()
    with server_of(config) as server, pytest.MonkeyPatch.context() as patch:
        decoded = functools.lru_cache(maxsize=PARTITIONS_MAX)(decode_manifest)
        patch.setattr("bigcrawl.scheduler.partition.reader.decode_manifest", decoded)
        return asyncio.run(_ask(config, server, urls))


async def _ask(config: Config, server: str, urls: Iterable[str]) -> dict[str, dict[str, Any]]:
    async with opened(config, server) as there:
        found = {url: await look_up(there, there.place_of(url)) for url in urls}
        return {url: said_of(one, there.partitions, config.traps) for url, one in found.items()}
