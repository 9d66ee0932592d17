from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb.keys import CrawlKeys, host_prefix
from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    kept_ms: int = 0,
    now_ms: int = 0,
) -> Call[tuple[int, bool]]:
    """Reserve a start at gates (name, gap ms), or a later time to ask. Return the time, and whether it is a start."""
    flat = tuple(value for gate in gates for value in gate)
    return Call(
        "pass_gates",
        (prefix,),
        (now_ms, earliest_ms, node, late_ms, missed_ms, ahead_ms, int(had_turn), kept_ms, *flat),
        lambda reply: (int(reply[0]), bool(reply[1])),
    )


class StartTimes(NamedTuple):
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
) -> Call[StartTimes]:
    return Call(
        "grant_starts",
        (keys.speed,),
        (now_ms, page_us, bytes_us, debt_us, wanted, share, given_back, horizon_ms),
        lambda reply: StartTimes(*map(int, reply)),
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
    args = (now_ms, host, crawl, delay_ms, most_ms, ticket, int(is_under_way))
    return Call("hold_host", (host_prefix(host),), args, int)


def leave_host(
    host: str, crawl: str, ticket: int, ended_ms: int, free_ms: int, kept_ms: int, now_ms: int = 0
) -> Call[bool]:
    """Release a host to other crawls; False if this ticket no longer holds it."""
    args = (now_ms, host, crawl, ticket, ended_ms, free_ms, kept_ms)
    return Call("leave_host", (host_prefix(host),), args, bool)
