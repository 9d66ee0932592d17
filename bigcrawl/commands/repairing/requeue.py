"""`scrapy frontier forget` and `scrapy frontier retry`: let URLs that ended be discovered, or fetched, again.

Both only append entries to the partitions' inboxes. The owner reads them in its next step, or at the next start of
the crawl. If the crawl was marked finished, the mark is removed.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from typing import TYPE_CHECKING

from bigcrawl.commands.looking.explain import look_up, where
from bigcrawl.commands.looking.explanation import where_text
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.repairing.dead import unbury
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.awaken import awaken_hosts
from bigcrawl.links import Links
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.crawl.fingerprints import forget_urls
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.scheduler.records.inbox_entry import FORGOTTEN, OUTCOMES
from bigcrawl.scheduler.records.outcomes import AGAIN, pack_keys, pack_outcomes
from bigcrawl.scheduler.records.queued_url import UNCHECKED, encode_batch

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.config import Config

BATCH_URLS_MAX = 2_000  # as in a node's outbox


def forget(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Forget that URLs were seen or ended: the next link to one queues it again.

    Raises:
        UrlError: an argument is not a URL; nothing was forgotten.
        ConfigError: the crawl does not exist.
        TransientStoreError: Redis does not answer; some or all of the URLs may have been forgotten.
    """
    with server_of(config) as server:
        urls = asyncio.run(_forget(config, server, words))
    lines = [f"to be forgotten: {url}" for url in urls]
    return Result({"forgotten": urls}, "\n".join(lines))


async def _forget(config: Config, server: str, words: Sequence[str]) -> list[str]:
    async with opened(config, server) as crawl:
        places = [crawl.place_of(word) for word in words]
        await forget_urls(crawl.client, config.crawl.name, [place.url for place in places])
        for partition, there in _by_partition(places).items():
            keys = pack_keys([place.key for place in there])
            await crawl.tell_owner(partition, FORGOTTEN, keys)
            await unbury(crawl, {partition: [place.key for place in there]})
        await _unmark_finished(crawl)
    return [place.url for place in places]


def retry(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Queue URLs that ended again, for the spider's `parse` and without a referring page; queue unknown URLs as new.

    A URL that has not ended stays where it is and makes the exit status 1. If its host is retired, the host is
    awakened instead.

    Raises:
        UrlError: an argument is not a URL; nothing was queued.
        ConfigError: the crawl does not exist.
        TransientStoreError: Redis does not answer; some or all of the URLs may have been queued.
        CorruptionError: a partition's files are damaged.
    """
    with server_of(config) as server:
        data = asyncio.run(_retry(config, server, words))
    lines = [f"queued again: {url}" for url in data["again"]]
    lines += [f"queued, never met before: {url}" for url in data["new"]]
    lines += [f"its host is awakened: {url}" for url in data["awakened"]]
    lines += [f"not queued again: {text}" for text in data["refused"]]
    return Result({**data}, "\n".join(lines), 1 if data["refused"] else 0)


async def _retry(config: Config, server: str, words: Sequence[str]) -> dict[str, list[str]]:
    async with opened(config, server) as crawl:
        places = list({place.key: place for place in map(crawl.place_of, words)}.values())
        found = {place: await look_up(crawl, place) for place in places}
        by_where = {place: where(found[place]) for place in places}
        again = [place for place in places if by_where[place] == "ended"]
        new = [place for place in places if by_where[place] == "nowhere"]
        retired = [place for place in places if found[place].host.is_retired]
        awake = await awaken_hosts(crawl, {place.host: place.partition for place in retired})
        await forget_urls(crawl.client, config.crawl.name, [place.url for place in (*again, *new)])
        await _queue(crawl, again, new)
        if again or new:
            await _unmark_finished(crawl)
    queued = {*again, *new}
    awakened = [place for place in retired if place.host in awake and place not in queued]
    refused = [
        f"{place.url} is {where_text(state)}" for place, state in by_where.items() if place not in {*queued, *awakened}
    ]
    data = {"again": again, "new": new, "awakened": awakened}
    return {**{name: [place.url for place in chosen] for name, chosen in data.items()}, "refused": refused}


async def _queue(crawl: OpenedCrawl, again: Sequence[Place], new: Sequence[Place]) -> None:
    """Send the URLs, after a record that they are queued again: sent later, it could hide how the new try ended."""
    node = f"by-hand-{uuid.uuid4().hex[:8]}"
    for partition, there in _by_partition(again).items():
        outcomes = pack_outcomes((place.key, AGAIN, 0) for place in there)
        await crawl.tell_owner(partition, OUTCOMES, outcomes)
    unchecked = {place.key for place in again}
    for partition, there in _by_partition([*again, *new]).items():
        encode = links_encoder(Links([place.url for place in there]), 0)
        urls = [encode(place.key, place.url)._replace(flags=UNCHECKED * (place.key in unchecked)) for place in there]
        for number, start in enumerate(range(0, len(urls), BATCH_URLS_MAX), 1):
            batch = urls[start : start + BATCH_URLS_MAX]
            call = scripts.append_batch(crawl.keys(partition), node, 1, number, encode_batch(batch), len(batch))
            await crawl.client.run([call])
        await crawl.note_arrivals([partition])
        await unbury(crawl, {partition: [place.key for place in there]})


async def _unmark_finished(crawl: OpenedCrawl) -> None:
    await FinishCheck(crawl.client, crawl.config.crawl.name, crawl.partitions).take_back()


def _by_partition(places: Iterable[Place]) -> dict[int, list[Place]]:
    found: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        found[place.partition].append(place)
    return found
