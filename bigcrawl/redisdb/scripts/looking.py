"""Calls that look at a whole crawl: the sums of its partitions, and what nodes and operators have told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys


class DueHost(NamedTuple):
    """The host of some partitions that is due first: when, and how its last tries failed."""

    host: str
    due_ms: int
    failures: int
    why: str


class PartitionSums(NamedTuple):
    """The figures of some partitions, summed at `now_ms`, in the time of the crawls.

    Attributes:
        sums: by the names of `crawl.survey.Survey`.
        counts: the fields of the partitions' state, all numbers.
        owners: each node that a partition names, and the number of partitions with a lease of it; 0 for one that has
            none left.
        rejected_in: partitions with inbox entries that could not be read.
        first_with_work: the first partition that is not empty; None if all are.
        next_due: the host due first; None if no host waits.
        asked: the marks of the rules by which partitions withhold URLs; 0 if one of them does not say.
    """

    now_ms: int
    sums: dict[str, int]
    counts: dict[str, int]
    owners: dict[str, int]
    rejected_in: tuple[int, ...]
    first_with_work: int | None
    next_due: DueHost | None
    asked: frozenset[int]


def sum_partitions(partitions: Sequence[PartitionKeys], now_ms: int = 0) -> Call[PartitionSums]:
    """Sum the figures of partitions, which must be on the same server: on a cluster, of one."""
    numbers = [keys.partition for keys in partitions]

    def parse(reply: list[Any]) -> PartitionSums:
        sums, counts, owners = (_numbers(words) for words in reply[1:4])
        return PartitionSums(
            int(reply[0]),
            sums,
            counts,
            owners,
            tuple(numbers[place - 1] for place in reply[4]),
            numbers[reply[5] - 1] if reply[5] else None,
            _due_host(reply[6]),
            frozenset(reply[7]),
        )

    names = tuple(
        name
        for keys in partitions
        for name in (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.inbox, keys.snoozed, keys.host)
    )
    return Call("sum_partitions", names, (now_ms,), parse)


class CrawlView(NamedTuple):
    """What nodes and operators have told of a crawl.

    Attributes:
        now_ms: the time, in the time of the crawls.
        reports: the last report of each live node, JSON, by its id.
        record: the fields of the crawl record, without the list of suffixes. Empty if there is no such crawl.
        control: the operator's orders.
    """

    now_ms: int
    reports: Mapping[str, str]
    record: Mapping[str, bytes]
    control: Mapping[str, bytes]


def look_crawl(keys: CrawlKeys, lease_ms: int, now_ms: int = 0) -> Call[CrawlView]:
    """Read what nodes and operators have told; a node without a beat for `lease_ms` is left out."""

    def parse(reply: list[Any]) -> CrawlView:
        reports, record, control = (
            {name.decode("utf-8", "replace"): value for name, value in zip(words[::2], words[1::2], strict=True)}
            for words in reply[1:]
        )
        return CrawlView(int(reply[0]), {node: text.decode() for node, text in reports.items()}, record, control)

    return Call("look_crawl", (keys.crawl, keys.nodes, keys.beats, keys.control), (now_ms, lease_ms), parse)


def _numbers(words: Sequence[Any]) -> dict[str, int]:
    return {name.decode("utf-8", "replace"): number for name, number in zip(words[::2], words[1::2], strict=True)}


def _due_host(words: Sequence[Any]) -> DueHost | None:
    return DueHost(words[0].decode(), words[1], words[2], words[3].decode()) if words else None
