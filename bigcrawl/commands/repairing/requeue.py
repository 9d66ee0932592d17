"""Makes the crawl fetch URLs or hosts again. Orders go to inboxes, and owners read them in their next step."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import TYPE_CHECKING

from bigcrawl.commands.looking.explain import where_text
from bigcrawl.commands.repairing.dead import unbury
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.crawl.fingerprints import forget_urls
from bigcrawl.scheduler.node.control import FORGOTTEN as NODES_FORGET
from bigcrawl.scheduler.records.inbox_entry import FORGOTTEN, OUTCOMES
from bigcrawl.scheduler.records.outcomes import AGAIN, pack_keys, pack_outcomes
from bigcrawl.scheduler.records.queued_url import UNCHECKED, encode_batch
from bigcrawl.views.explain import look_up, place_name
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace

BATCH_URLS_MAX = 2_000  # as in a node's outbox


def forget(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Forget that URLs were seen or ended: the next link to one queues it again."""
    urls = in_crawl(config, _forget_urls, words)
    lines = [f"to be forgotten: {url}" for url in urls]
    return Result({"forgotten": urls}, "\n".join(lines))


async def _forget_urls(crawl: OpenedCrawl, words: Sequence[str]) -> list[str]:
    places = [crawl.place_of(word) for word in words]
    await forget_urls(crawl.client, crawl.config.crawl.name, [place.url for place in places])
    for partition, there in _by_partition(places).items():
        keys = pack_keys([place.key for place in there])
        await crawl.send_to_owner(partition, FORGOTTEN, keys)
        await unbury(crawl, {partition: [place.key for place in there]})
    # This comes last: the links that nodes then send again arrive after the entries for the owners.
    await crawl.client.command("HINCRBY", CrawlKeys(crawl.config.crawl.name).control, NODES_FORGET, "1")
    await crawl.unmark_finished()
    return [place.url for place in places]


def retry(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Queue URLs that ended again, for the spider's `parse` and without a referring page; queue unknown URLs as new.

    A URL that has not ended stays where it is and makes the exit status 1, unless its host is retired and is awakened.
    """
    data = in_crawl(config, _retry_urls, words)
    lines = [f"queued again: {url}" for url in data["again"]]
    lines += [f"queued, never seen before: {url}" for url in data["new"]]
    lines += [f"the failures of its host are cleared: {url}" for url in data["awakened"]]
    lines += [f"not queued again: {text}" for text in data["refused"]]
    return Result({**data}, "\n".join(lines), 1 if data["refused"] else 0)


async def _retry_urls(crawl: OpenedCrawl, words: Sequence[str]) -> dict[str, list[str]]:
    places = list({place.key: place for place in map(crawl.place_of, words)}.values())
    found = {place: await look_up(crawl, place) for place in places}
    by_where = {place: place_name(found[place]) for place in places}
    again = [place for place in places if by_where[place] == "ended"]
    new = [place for place in places if by_where[place] == "nowhere"]
    retired = [place for place in places if found[place].host.is_retired]
    awake = await awaken_hosts(crawl, {place.host: place.partition for place in retired})
    await forget_urls(crawl.client, crawl.config.crawl.name, [place.url for place in (*again, *new)])
    await _queue_urls(crawl, again, new)
    if again or new:
        await crawl.unmark_finished()
    queued = {*again, *new}
    awakened = [place for place in retired if place.host in awake and place not in queued]
    refused = [
        f"{place.url} is {where_text(state)}" for place, state in by_where.items() if place not in {*queued, *awakened}
    ]
    data = {"again": again, "new": new, "awakened": awakened}
    return {**{name: [place.url for place in chosen] for name, chosen in data.items()}, "refused": refused}


async def _queue_urls(crawl: OpenedCrawl, again: Sequence[UrlPlace], new: Sequence[UrlPlace]) -> None:
    """Send an outcome AGAIN, and only then the URLs: sent later, it could hide the outcome of the new try."""
    node = f"by-hand-{uuid.uuid4().hex[:8]}"
    for partition, there in _by_partition(again).items():
        outcomes = pack_outcomes((place.key, AGAIN, 0) for place in there)
        await crawl.send_to_owner(partition, OUTCOMES, outcomes)
    unchecked = {place.key for place in again}
    for partition, there in _by_partition([*again, *new]).items():
        encode = links_encoder(Links([place.url for place in there]), 0)
        urls = [encode(place.key, place.url)._replace(flags=UNCHECKED * (place.key in unchecked)) for place in there]
        for number, start in enumerate(range(0, len(urls), BATCH_URLS_MAX), 1):
            batch = urls[start : start + BATCH_URLS_MAX]
            call = scripts.append_batch(crawl.keys(partition), node, 1, number, encode_batch(batch), len(batch))
            await crawl.client.run([call])
        await crawl.record_arrivals([partition])
        await unbury(crawl, {partition: [place.key for place in there]})


def _by_partition(places: Iterable[UrlPlace]) -> dict[int, list[UrlPlace]]:
    found: dict[int, list[UrlPlace]] = defaultdict(list)
    for place in places:
        found[place.partition].append(place)
    return found


def awaken_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every host that is snoozed or retired")


def awaken(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Clear the failures of hosts, named or given by a URL; a finished crawl continues at its next start."""
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
