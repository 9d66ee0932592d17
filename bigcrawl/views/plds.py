from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import BigcrawlError, CorruptionError
from bigcrawl.scheduler.budgets.allowances import divide_budgets
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts, InDegreeRanks, sum_published
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.partition.reader import PldsOnDisk, read_plds
from bigcrawl.views.budget import read_rules, rule_book
from bigcrawl.views.counted import counts_reader
from bigcrawl.views.feature import all_views
from bigcrawl.views.newest_files import files_to_read, is_wanted_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.scheduler.rules.budget_rules import RuleBook
    from bigcrawl.views.opened_crawl import OpenedCrawl

    CountedPld = tuple[str, int, int]

ORDERS: Final = ("pages", "bytes")
LISTED_MAX: Final = 512
"""How many PLDs a node keeps counts of."""


class TopPld(NamedTuple):
    """A PLD with many pages; in-degree, rank and the policy's budget are None if unknown."""

    name: str
    pages: int
    bytes: int
    in_degree: int | None
    rank: int | None
    budget: int | None


class PldsInFiles(NamedTuple):
    in_degrees: dict[str, int]
    said: dict[str, dict[str, Any]]
    partitions: dict[int, PldsOnDisk]
    from_store: int = 0


async def list_plds(crawl: OpenedCrawl, order: str, limit: int, *, asks_store: bool = False) -> dict[str, Any]:
    """Return the PLDs with the most pages or bytes, and the numbers of pages and of unreadable nodes. Blocks."""
    if (counts_of := counts_reader()) is None:
        return {"plds": [], "pages": None, "unreadable": 0, "from_store": 0, "unread": 0}
    counted, unreadable = await counts_of.read_pages_by_pld(crawl.client, crawl.config.crawl.name)
    published = await crawl.client.command("HVALS", crawl.crawl_keys.in_degrees)
    counts, book = sum_published(published)[0], rule_book(crawl, await read_rules(crawl))
    rows = counted.rows()
    pages = sum(row.times for row in rows) + counted.others
    if order == "bytes":
        rows.sort(key=lambda row: (-row.amount, row.name))
    # Not in an executor's thread: the process would wait at exit for one blocked by a hung disk.
    found = _look_up(crawl, rows[:limit], counts, book, asks_store)
    return {**found, "pages": pages, "unreadable": unreadable}


def _look_up(
    crawl: OpenedCrawl, rows: Sequence[CountedPld], counts: InDegreeCounts, book: RuleBook, asks_store: bool
) -> dict[str, Any]:
    files = read_files(crawl, [name for name, *_ in rows], asks_store=asks_store)
    found = []
    for pld in top_plds(crawl, rows, files.in_degrees, counts):
        budget, set_by = _budget_and_rule(crawl, pld, book, files)
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


def _budget_and_rule(
    crawl: OpenedCrawl, pld: TopPld, book: RuleBook, files: PldsInFiles
) -> tuple[int | None, str | None]:
    by_hand = book.for_host(pld.name).get("budget")
    if by_hand is not None:
        return by_hand.value, f"rule {by_hand.rule}"
    if pld.budget is None:
        return None, None
    said = files.said.get(pld.name, {})
    lowered = {"policy": 1}
    lowered |= {view.row: view.divisor(said.get(view.name), crawl.config) for view in all_views() if view.row}
    set_by = max(lowered, key=lowered.__getitem__)
    divisors = np.array([lowered[set_by]], dtype=np.uint32)
    return int(divide_budgets(np.array([pld.budget], dtype=np.uint32), divisors)[0]), set_by


def read_files(
    crawl: OpenedCrawl, names: Iterable[str], partitions: Iterable[int] = (), *, asks_store: bool = False
) -> PldsInFiles:
    """Read the files of `partitions` and of the PLDs `names`, except missing and damaged ones; blocks."""
    by_partition: dict[int, list[str]] = {number: [] for number in partitions}
    for name in names:
        by_partition.setdefault(crawl.url_keys.partition_of(name, crawl.partitions), []).append(name)
    files = PldsInFiles({}, {}, {})
    for number, some in sorted(by_partition.items()):
        keys = [crawl.url_keys.of_pld(name) for name in some]
        found = None
        with suppress(BigcrawlError):  # `verify` reports damaged files
            found = read_plds(crawl.directory(number), keys)
        if found is None and asks_store:
            found = _read_stored(crawl, number, keys)
            files = files._replace(from_store=files.from_store + (found is not None))
        if found is not None:
            files.partitions[number] = found
            files.in_degrees.update(zip(some, found.in_degrees.tolist(), strict=True))
            for feature, each in found.said.items():
                for name, said in zip(some, each, strict=False):
                    files.said.setdefault(name, {})[feature] = said
    return files


def _read_stored(crawl: OpenedCrawl, partition: int, keys: Sequence[int]) -> PldsOnDisk | None:
    if crawl.config.store.url:
        with suppress(CorruptionError), files_to_read(crawl, partition, is_wanted_file) as files:
            return read_plds(files.directory, keys)
    return None


def top_plds(
    crawl: OpenedCrawl, rows: Iterable[CountedPld], in_degrees: Mapping[str, int], counts: InDegreeCounts
) -> list[TopPld]:
    ranks, policy = InDegreeRanks(counts), make_policy(crawl.config.budget, counts)
    found = []
    for name, pages, size in rows:
        degree = in_degrees.get(name)
        degrees = np.array([degree or 0], dtype=np.uint32)
        key = np.array([crawl.url_keys.of_pld(name)], dtype=KEY_TYPE)
        rank = int(ranks.likely_ranks(degrees)[0]) if degree and ranks.total else None
        budget = None if policy is None or degree is None else int(policy.budgets(key, degrees)[0])
        found.append(TopPld(name, pages, size, degree, rank, budget))
    return found
