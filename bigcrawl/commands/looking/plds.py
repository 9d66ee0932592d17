"""`scrapy frontier plds`: the pay-level domains (PLDs) with most pages, as nodes have counted them.

Each node keeps the 512 PLDs with most of its pages, and sends its counts every ten seconds. In-degrees, traps and
mirrors are read from the partitions' files, of the PLDs that are listed only.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.commands.newest_files import REMEDY, files_to_read, is_looked_at
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.budget import read_rules
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import BigcrawlError, CorruptionError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.budgets.in_degrees import Ranks, sum_published
from bigcrawl.scheduler.budgets.lowered import divided
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.crawl.shared_tallies import read_pages_by_pld
from bigcrawl.scheduler.partition.reader import PldsOnDisk, read_plds
from bigcrawl.scheduler.rules.budget_rules import merge_rules
from bigcrawl.scheduler.rules.rule_book import RuleBook
from bigcrawl.tallies.tallies import PLDS_MAX

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
    from bigcrawl.tallies.frequent import FrequentName

ORDERS: Final = ("pages", "bytes")
LIMIT: Final = 30


class TopPld(NamedTuple):
    """A PLD with many pages; in-degree, rank and the policy's budget are None if they are not known."""

    name: str
    pages: int
    bytes: int
    in_degree: int | None
    rank: int | None
    budget: int | None


class PldsInFiles(NamedTuple):
    """What partitions' files say of PLDs, by name: in-degrees, and which are traps or mirrors.

    `partitions` are those read, and `from_store` how many of them in the store.
    """

    in_degrees: dict[str, int]
    caught: set[str]
    mirrors: set[str]
    partitions: dict[int, PldsOnDisk]
    from_store: int = 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose and order PLDs."""
    add = parser.add_argument
    add("--sort", choices=ORDERS, default="pages", help="most pages first, or most bytes of those with most pages")
    add("--here", action="store_true", help="read no files of the store, where there are none here")
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"how many, at most {PLDS_MAX}; {LIMIT} by default")


def plds(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List the pay-level domains with most pages, with bytes, in-degree and budget.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis or the store does not answer.
    """
    with server_of(config) as server:
        wanted = (opts.sort, min(max(1, opts.limit), PLDS_MAX), not getattr(opts, "here", False))
        data = asyncio.run(_list(config, server, *wanted))
    return Result(data, plds_text(data))


async def _list(config: Config, server: str, order: str, limit: int, asks_store: bool) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        return await list_plds(crawl, order, limit, asks_store=asks_store)


async def list_plds(crawl: OpenedCrawl, order: str, limit: int, *, asks_store: bool = False) -> dict[str, Any]:
    """Return the PLDs with most pages or bytes, how many pages were counted, and of how many nodes they are missing.

    It blocks while it reads files, so call it on an event loop of your own.

    Args:
        crawl: the crawl.
        order: one of `ORDERS`.
        limit: how many PLDs.
        asks_store: whether to read the newest point in the store of a partition that has no files here.

    Cost: three Redis commands, 1 ms and up to 20 KB a node; the files of as many partitions as PLDs are listed. Of the
    store, some tables of each of these: 50 bytes a PLD, 5 a content.

    Raises:
        TransientStoreError: Redis or the store does not answer.
    """
    counted, unreadable = await read_pages_by_pld(crawl.client, crawl.config.crawl.name)
    published = await crawl.client.command("HVALS", CrawlKeys(crawl.config.crawl.name).in_degrees)
    counts, rules = sum_published(published)[0], await read_rules(crawl)
    book = RuleBook(merge_rules(rules.settings, rules.live), crawl.suffixes.pld, crawl.url_keys.of_pld)
    rows = counted.rows()
    pages = sum(row.times for row in rows) + counted.others
    if order == "bytes":
        rows.sort(key=lambda row: (-row.amount, row.name))
    # Not in a thread of an executor: the process would wait at its end for one that a disk hangs.
    found = _look_up(crawl, rows[:limit], counts, book, asks_store)
    return {**found, "pages": pages, "unreadable": unreadable}


def _look_up(
    crawl: OpenedCrawl, rows: Sequence[FrequentName], counts: InDegreeCounts, book: RuleBook, asks_store: bool
) -> dict[str, Any]:
    files = read_files(crawl, [row.name for row in rows], asks_store=asks_store)
    found = []
    for pld in top_plds(crawl, rows, files.in_degrees, counts):
        budget, set_by = _budget(crawl, pld, book, files)
        found.append(
            {
                "pld": pld.name,
                "pages": pld.pages,
                "bytes": pld.bytes,
                "in_degree": pld.in_degree,
                "rank": pld.rank,
                "budget": budget,
                "budget_set_by": set_by,
            }
        )
    return {"plds": found, "from_store": files.from_store, "unread": sum(row["in_degree"] is None for row in found)}


def _budget(crawl: OpenedCrawl, pld: TopPld, book: RuleBook, files: PldsInFiles) -> tuple[int | None, str | None]:
    """Return the URLs a turn that are in force for a PLD, and what sets them; None if there is no budget."""
    by_hand = book.for_host(pld.name).budget
    if by_hand is not None:
        return by_hand.value, f"rule {by_hand.rule}"
    if pld.budget is None:
        return None, None
    traps = crawl.config.traps
    lowered = {"policy": 1}
    if pld.name in files.caught and traps.share:
        lowered["trap"] = traps.divisor
    if pld.name in files.mirrors and traps.mirror_share:
        lowered["mirror"] = traps.mirror_divisor
    set_by = max(lowered, key=lowered.__getitem__)
    divisors = np.array([lowered[set_by]], dtype=np.uint32)
    return int(divided(np.array([pld.budget], dtype=np.uint32), divisors)[0]), set_by


def read_files(
    crawl: OpenedCrawl, names: Iterable[str], partitions: Iterable[int] = (), *, asks_store: bool = False
) -> PldsInFiles:
    """Read what files say of PLDs, from their partitions and from `partitions`.

    Files that are not here are those of the store, if that is asked. Others, and damaged ones, are left out.

    Raises:
        TransientStoreError: the store does not answer.
    """
    by_partition: dict[int, list[str]] = {number: [] for number in partitions}
    for name in names:
        by_partition.setdefault(crawl.url_keys.partition_of(name, crawl.partitions), []).append(name)
    files = PldsInFiles({}, set(), set(), {})
    for number, some in sorted(by_partition.items()):
        keys = [crawl.url_keys.of_pld(name) for name in some]
        found = None
        with suppress(BigcrawlError):  # a damaged file; `verify` names it
            found = read_plds(crawl.directory(number), keys)
        if found is None and asks_store:
            found = _stored(crawl, number, keys)
            files = files._replace(from_store=files.from_store + (found is not None))
        if found is not None:
            files.partitions[number] = found
            files.in_degrees.update(zip(some, found.in_degrees.tolist(), strict=True))
            traps = zip(some, found.traps, strict=True)
            files.caught.update(name for name, trap in traps if trap is not None and trap.is_caught)
            mirrors = zip(some, found.mirrors, strict=True)
            files.mirrors.update(name for name, mirror in mirrors if mirror is not None and mirror.is_mirror)
    return files


def _stored(crawl: OpenedCrawl, partition: int, keys: Sequence[int]) -> PldsOnDisk | None:
    if crawl.config.store.url:
        with suppress(CorruptionError), files_to_read(crawl, partition, is_looked_at) as files:
            return read_plds(files.directory, keys)
    return None


def top_plds(
    crawl: OpenedCrawl, rows: Iterable[FrequentName], in_degrees: Mapping[str, int], counts: InDegreeCounts
) -> list[TopPld]:
    """Add rank and the policy's budget to PLDs with their pages. `counts` are those of the whole crawl."""
    ranks, policy = Ranks(counts), make_policy(crawl.config.budget, counts)
    found = []
    for row in rows:
        degree = in_degrees.get(row.name)
        degrees = np.array([degree or 0], dtype=np.uint32)
        key = np.array([crawl.url_keys.of_pld(row.name)], dtype=KEY_TYPE)
        rank = int(ranks.likely(degrees)[0]) if degree and ranks.total else None
        budget = None if policy is None or degree is None else int(policy.budgets(key, degrees)[0])
        found.append(TopPld(row.name, row.times, row.amount, degree, rank, budget))
    return found


def plds_text(data: dict[str, Any]) -> str:
    """Return the listing as text."""
    if not data["plds"]:
        lines = ["no page is counted yet; nodes send their counts every ten seconds"]
    else:
        width = max(20, *(len(row["pld"]) for row in data["plds"]))
        lines = [f"{'PLD':<{width}}       pages   share          MB  in-degree  budget, URLs a turn"]
    for row in data["plds"]:
        in_degree = "" if row["in_degree"] is None else f"{row['in_degree']:,}"
        by = "" if row["budget_set_by"] in (None, "policy") else f" ({row['budget_set_by']})"
        budget = "none" if row["budget"] is None else f"{row['budget']:,}{by}"
        lines.append(
            f"{row['pld']:<{width}}{row['pages']:>12,}{row['pages'] / data['pages']:>8.1%}"
            f"{row['bytes'] / 1e6:>12,.1f}{in_degree:>11}  {budget}"
        )
    if data["from_store"]:
        lines.append(f"the store was asked for {data['from_store']:,} partitions, whose files are not here")
    if data["unread"]:
        lines.append(f"the files of {data['unread']:,} of these PLDs are not here, or none were committed; {REMEDY}")
    if data["unreadable"]:
        nodes = "1 node" if data["unreadable"] == 1 else f"{data['unreadable']:,} nodes"
        lines.append(f"the counts of {nodes} cannot be read by this version")
    return "\n".join(lines)
