"""`scrapy frontier awaken HOST... | --all`: fetch again from hosts that are retired or snoozed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.crawl.survey import FinishCheck

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option for all hosts."""
    parser.add_argument("--all", action="store_true", help="every host that is snoozed or retired")


def awaken(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Clear the failures of hosts, given by name or by any URL; a finished crawl goes on at the next start.

    A host that has not failed is left alone and makes the exit status 1.

    Raises:
        UrlError: one of the words is neither; nothing was changed.
        ConfigError: the crawl does not exist, or hosts are named with `--all`, or no hosts without it.
        TransientStoreError: Redis does not answer; all or some may have been awakened.
    """
    if bool(words) == opts.all:
        raise ConfigError("awaken wants hosts, or --all for every host that is snoozed or retired; not both")
    with server_of(config) as server:
        awake, well = asyncio.run(_awaken_all(config, server) if opts.all else _awaken(config, server, words))
    lines = [f"awakened: {host}" for host in awake] + [f"{host} has not failed" for host in well]
    return Result({"awakened": awake, "well": well}, "\n".join(lines), 1 if well else 0)


async def _awaken(config: Config, server: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    async with opened(config, server) as crawl:
        places = [crawl.place_of(word if "://" in word else f"http://{word}/") for word in words]
        awake = await awaken_hosts(crawl, {place.host: place.partition for place in places})
    return awake, [host for host in dict.fromkeys(place.host for place in places) if host not in awake]


async def _awaken_all(config: Config, server: str) -> tuple[list[str], list[str]]:
    async with opened(config, server) as crawl:
        rows = [("ZRANGE", crawl.keys(partition).snoozed, 0, -1) for partition in range(crawl.partitions)]
        found = enumerate(await crawl.client.commands(rows))
        return await awaken_hosts(crawl, {host.decode(): partition for partition, hosts in found for host in hosts}), []


async def awaken_hosts(crawl: OpenedCrawl, hosts: Mapping[str, int]) -> list[str]:
    """Awaken hosts, given with their partitions; return those that had failed."""
    calls = [scripts.awaken_host(crawl.keys(partition), host) for host, partition in hosts.items()]
    had_failed = await crawl.client.run(calls)
    await crawl.note_arrivals(hosts.values())
    awake = [host for host, failed in zip(hosts, had_failed, strict=True) if failed]
    if awake:
        await FinishCheck(crawl.client, crawl.config.crawl.name, crawl.partitions).take_back()
    return awake
