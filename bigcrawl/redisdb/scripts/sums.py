from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys


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
        for name in (
            *(keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.inbox, keys.snoozed, keys.host),
            keys.leases,
        )
    )
    return Call("sum_partitions", names[:-1], (now_ms,), parse, beside=names[-1:])


def _parse_numbers(words: Sequence[Any]) -> dict[str, int]:
    return {name.decode("utf-8", "replace"): number for name, number in zip(words[::2], words[1::2], strict=True)}


def _due_host(words: Sequence[Any]) -> DueHost | None:
    return DueHost(words[0].decode(), words[1], words[2], words[3].decode()) if words else None
