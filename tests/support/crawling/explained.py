"""What `scrapy frontier explain` knows of a crawl's URLs, asked for many at a time."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.views.explain import look_up, url_data
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.views.opened_crawl import OpenedCrawl
    from tests.support.crawling.crawls import Crawl

PARTITIONS_MAX = 256


def explained(crawl: Crawl, urls: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What is said of each URL; the crawl may run or have ended. Cost: some milliseconds each.

    A partition's manifest is read for each URL, as by `scrapy frontier explain`, and its bytes are decoded once.
    """
    config = crawl.config()
    with pytest.MonkeyPatch.context() as patch:
        decoded = functools.lru_cache(maxsize=PARTITIONS_MAX)(decode_manifest)
        patch.setattr("bigcrawl.scheduler.partition.reader.decode_manifest", decoded)
        return in_crawl(config, _ask, urls)


async def _ask(there: OpenedCrawl, urls: Iterable[str]) -> dict[str, dict[str, Any]]:
    found = {url: await look_up(there, there.place_of(url)) for url in urls}
    return {url: url_data(one, there.partitions, there.config) for url, one in found.items()}
