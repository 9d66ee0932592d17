from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.redisdb.keys import CLOCK, CRAWLS, CrawlKeys
from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence


def tell_time(
    estimate_ms: int, step_ms: int, node: str, *, correct: bool = False, now_ms: int = 0
) -> Call[tuple[int, int]]:
    def parse(reply: list[int]) -> tuple[int, int]:
        return int(reply[0]), int(reply[1])

    return Call("tell_time", (CLOCK,), (now_ms, estimate_ms, step_ms, node, int(correct)), parse)


def check_rights(rows: Sequence[tuple[str, str]]) -> Call[list[tuple[str, str]]]:
    """Return the rows (command, key) that the user may not run; key "" if the command is never allowed."""

    def parse(reply: list[list[bytes]]) -> list[tuple[str, str]]:
        return [(command.decode(), key.decode()) for command, key in reply]

    return Call("check_rights", (CLOCK,), tuple(word for row in rows for word in row), parse)


class CrawlCompany(NamedTuple):
    has_others: bool
    all_hold: bool
    longest_ms: int


def meet_crawls(
    node: str,
    crawl: str,
    lease_ms: int,
    delay_ms: int,
    *,
    holds: bool = True,
    leave: bool = False,
    rest_ms: int = 0,
    now_ms: int = 0,
) -> Call[CrawlCompany]:
    """Announce that a node is alive or leaves; `rest_ms` is how long its hosts still rest after it has left."""

    def parse(reply: list[int]) -> CrawlCompany:
        return CrawlCompany(bool(reply[0]), bool(reply[1]), int(reply[2]))

    args = (now_ms, node, crawl, lease_ms, int(holds), delay_ms, 0 if leave else 1, rest_ms)
    return Call("meet_crawls", (CRAWLS,), args, parse)


class NodesMade(NamedTuple):
    """Output of one node, or of all: scraped items, and warnings and errors of the log."""

    items: int = 0
    warnings: int = 0
    errors: int = 0


NOTHING_MADE: Final = NodesMade()


class BeatReply(NamedTuple):
    reports: dict[str, str]
    made: NodesMade


def beat_node(
    keys: CrawlKeys,
    node: str,
    report: str,
    lease_ms: int,
    made: Sequence[int] = (),
    *,
    leave: bool = False,
    is_first: bool = False,
    now_ms: int = 0,
) -> Call[BeatReply]:
    """Send a heartbeat, and the counts of `made` since the node's start; nothing if another node declared it dead."""

    def parse(reply: list[Any]) -> BeatReply:
        names = [value.decode() for value in reply[4:]]
        return BeatReply(dict(zip(names[::2], names[1::2], strict=True)), NodesMade(*reply[1:4]))

    args = (now_ms, node, report, lease_ms, 0 if leave else 1, int(is_first), *made)
    return Call("beat_node", (keys.nodes, keys.beats, keys.counts, keys.events), args, parse)


def put_recent(keys: CrawlKeys, node: str, recent: str, gone_max: int) -> Call[int]:
    """Write this node's recent activity; keep that of the `gone_max` nodes that left last."""
    return Call("put_recent", (keys.recent, keys.nodes), (node, recent, gone_max), int)


def record_event(keys: CrawlKeys, at_ms: int, kind: str, node: str = "", text: str = "") -> Call[int]:
    return Call("record_event", (keys.events,), (at_ms, kind, node, text), int)


def announce_end(keys: CrawlKeys, counters: bytes, now_ms: int = 0) -> Call[int]:
    return Call("announce_end", (keys.crawl, keys.events), (now_ms, counters), int)


def claim_start(
    keys: CrawlKeys,
    node: str,
    start_digest: str,
    lease_ms: int,
    *,
    done: bool = False,
    undone: bool = False,
    now_ms: int = 0,
) -> Call[int]:
    """Claim, renew, finish or release the start requests. Return 1: this node's, 0: another's or free, 2: done."""
    action = 2 if done else 3 if undone else 1
    return Call("claim_start", (keys.crawl,), (now_ms, node, start_digest, lease_ms, action), int)


def record_errors(keys: CrawlKeys, rows: Sequence[tuple[str, int, str]], kept_max: int, now_ms: int = 0) -> Call[int]:
    """Count failed fetches. A row has reason, newline and PLD; the number of fetches; an example URL."""
    args = (now_ms, kept_max, *(word for row in rows for word in row))
    return Call("record_errors", (keys.errors, keys.examples), args, int)
