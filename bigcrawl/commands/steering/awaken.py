from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every host that is snoozed or retired")


def awaken(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Clear the failures of hosts, given by name or by any URL; a finished crawl continues at its next start."""
    if bool(words) == opts.all:
        raise ConfigError("awaken needs either hosts, or --all for every host that is snoozed or retired")
    awake, well = in_crawl(config, _awaken_all) if opts.all else in_crawl(config, _clear_failures, words)
    lines = [f"awakened: {host}" for host in awake] + [f"{host} has not failed" for host in well]
    return Result({"awakened": awake, "well": well}, "\n".join(lines), 1 if well else 0)


async def _clear_failures(crawl: OpenedCrawl, words: Sequence[str]) -> tuple[list[str], list[str]]:
    places = [crawl.place_of_site(word) for word in words]
    awake = await awaken_hosts(crawl, {place.host: place.partition for place in places})
    return awake, [host for host in dict.fromkeys(place.host for place in places) if host not in awake]


async def _awaken_all(crawl: OpenedCrawl) -> tuple[list[str], list[str]]:
    rows = [("ZRANGE", crawl.keys(partition).snoozed, 0, -1) for partition in range(crawl.partitions)]
    found = enumerate(await crawl.client.commands(rows))
    return await awaken_hosts(crawl, {host.decode(): partition for partition, hosts in found for host in hosts}), []


async def awaken_hosts(crawl: OpenedCrawl, hosts: Mapping[str, int]) -> list[str]:
    calls = [scripts.awaken_host(crawl.keys(partition), host) for host, partition in hosts.items()]
    had_failed = await crawl.client.run(calls)
    await crawl.record_arrivals(hosts.values())
    awake = [host for host, failed in zip(hosts, had_failed, strict=True) if failed]
    if awake:
        await crawl.unmark_finished()
    return awake
