"""What `scrapy frontier awaken HOST...` does: hosts that were given up, or rest for long, are asked again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.commands.answer import Answer
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.survey import FinishCheck

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.config import Config


def awaken(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Answer:
    """Forget the failures of hosts, named by themselves or by any URL of theirs; a crawl that had ended goes on.

    A host that has not failed is left as it is, and makes the exit status 1.

    Raises:
        UrlError: one of the words is neither; nothing was changed.
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer; all or some may have been awakened.
    """
    with server_of(config) as server:
        awake, well = asyncio.run(_awaken(config, server, words))
    lines = [f"awakened: {host}" for host in awake] + [f"{host} has not failed" for host in well]
    return Answer({"awakened": awake, "well": well}, "\n".join(lines), 1 if well else 0)


async def _awaken(config: Config, server: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    async with opened(config, server) as crawl:
        places = [crawl.place_of(word if "://" in word else f"http://{word}/") for word in words]
        awake = await awaken_hosts(crawl, places)
    return awake, [host for host in dict.fromkeys(place.host for place in places) if host not in awake]


async def awaken_hosts(crawl: OpenedCrawl, places: Iterable[Place]) -> list[str]:
    """Awaken the hosts of these places; returns those that had failed."""
    hosts = {place.host: place.partition for place in places}
    calls = [scripts.awaken_host(crawl.keys(partition), host) for host, partition in hosts.items()]
    had_failed = await crawl.client.run(calls)
    awake = [host for host, failed in zip(hosts, had_failed, strict=True) if failed]
    if awake:
        await FinishCheck(crawl.client, crawl.config.crawl.name, crawl.partitions).take_back()
    return awake
