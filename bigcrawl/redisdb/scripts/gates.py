"""When a fetch may start: gates of servers and hosts, and the crawl's speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb.keys import host_prefix
from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import CrawlKeys


def pass_gates(
    prefix: str,
    gates: Sequence[tuple[str, int]],
    earliest_ms: int,
    node: str,
    *,
    late_ms: int,
    ahead_ms: int,
    missed_ms: int = 0,
    had_turn: bool = False,
    now_ms: int = 0,
) -> Call[tuple[int, bool]]:
    """Reserve a start at all of some gates, (name, gap ms) each, or a turn to ask again.

    Returns:
        When, in the time of the crawls, and whether it is a start.
    """
    flat = tuple(value for gate in gates for value in gate)
    return Call(
        "pass_gates",
        (prefix,),
        (now_ms, earliest_ms, node, late_ms, missed_ms, ahead_ms, int(had_turn), *flat),
        lambda reply: (int(reply[0]), bool(reply[1])),
    )


class Starts(NamedTuple):
    """Start times that were granted; microseconds of server time, `granted` of them from `first_us` on."""

    now_us: int
    first_us: int
    step_us: int
    granted: int


def grant_starts(
    keys: CrawlKeys,
    *,
    page_us: int,
    bytes_us: int,
    debt_us: int,
    wanted: int,
    share: int,
    given_back: int,
    horizon_ms: int,
    now_ms: int = 0,
) -> Call[Starts]:
    """Get start times of the crawl's speed; `page_us` and `bytes_us` are microseconds a start, 0 without a limit."""
    return Call(
        "grant_starts",
        (keys.speed,),
        (now_ms, page_us, bytes_us, debt_us, wanted, share, given_back, horizon_ms),
        lambda reply: Starts(*map(int, reply)),
    )


def hold_host(
    host: str,
    crawl: str,
    delay_ms: int,
    most_ms: int,
    ticket: int,
    *,
    is_under_way: bool = False,
    now_ms: int = 0,
) -> Call[int]:
    """Have a host to oneself among all crawls: 0, or for how many ms to wait before asking again."""
    args = (now_ms, host, crawl, delay_ms, most_ms, ticket, int(is_under_way))
    return Call("hold_host", (host_prefix(host),), args, int)


def leave_host(
    host: str, crawl: str, ticket: int, ended_ms: int, free_ms: int, kept_ms: int, now_ms: int = 0
) -> Call[bool]:
    """Leave a host to other crawls; False when it is not held with this ticket any more."""
    args = (now_ms, host, crawl, ticket, ended_ms, free_ms, kept_ms)
    return Call("leave_host", (host_prefix(host),), args, bool)
