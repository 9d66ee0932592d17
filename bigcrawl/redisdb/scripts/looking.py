"""Calls that read a whole crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys


class DueHost(NamedTuple):
    host: str
    due_ms: int
    failures: int
    why: str


class PartitionSums(NamedTuple):
    """The summed figures of some partitions.

    `sums` has the names of `crawl.survey.Survey`. `owners` counts the partitions that each node has a lease of. `asked`
    has the marks of the rules by which partitions withhold URLs, 0 for an unknown mark.
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
    numbers = [keys.partition for keys in partitions]

    def parse(reply: list[Any]) -> PartitionSums:
        sums, counts, owners = (_parse_numbers(words) for words in reply[1:4])
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
    """Nodes' JSON reports, the crawl record without the list of suffixes, and operators' orders."""

    now_ms: int
    reports: Mapping[str, str]
    record: Mapping[str, bytes]
    control: Mapping[str, bytes]


def look_crawl(keys: CrawlKeys, lease_ms: int, now_ms: int = 0) -> Call[CrawlView]:
    def parse(reply: list[Any]) -> CrawlView:
        reports, record, control = (
            {name.decode("utf-8", "replace"): value for name, value in zip(words[::2], words[1::2], strict=True)}
            for words in reply[1:]
        )
        return CrawlView(int(reply[0]), {node: text.decode() for node, text in reports.items()}, record, control)

    return Call("look_crawl", (keys.crawl, keys.nodes, keys.beats, keys.control), (now_ms, lease_ms), parse)


def _parse_numbers(words: Sequence[Any]) -> dict[str, int]:
    return {name.decode("utf-8", "replace"): number for name, number in zip(words[::2], words[1::2], strict=True)}


def _due_host(words: Sequence[Any]) -> DueHost | None:
    return DueHost(words[0].decode(), words[1], words[2], words[3].decode()) if words else None
