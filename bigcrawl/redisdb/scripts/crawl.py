"""Calls for state shared by the nodes of a crawl, or by all crawls on a server: time, live nodes, start requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.keys import CLOCK, CRAWLS
from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import CrawlKeys


def tell_time(
    estimate_ms: int, step_ms: int, node: str, *, correct: bool = False, now_ms: int = 0
) -> Call[tuple[int, int]]:
    """Ask for the time of the crawls. The result is the time, and by how many ms the server's clock had been set."""

    def parse(reply: list[int]) -> tuple[int, int]:
        return int(reply[0]), int(reply[1])

    return Call("tell_time", (CLOCK,), (now_ms, estimate_ms, step_ms, node, int(correct)), parse)


def check_rights(rows: Sequence[tuple[str, str]]) -> Call[list[tuple[str, str]]]:
    """Ask for rows of a command and a key. The result has those that are not permitted, without a key if nowhere."""

    def parse(reply: list[list[bytes]]) -> list[tuple[str, str]]:
        return [(command.decode(), key.decode()) for command, key in reply]

    return Call("check_rights", (CLOCK,), tuple(word for row in rows for word in row), parse)


class Company(NamedTuple):
    """The other live crawls on a Redis.

    Attributes:
        has_others: whether there are any.
        all_hold: whether all their nodes hold the hosts that they fetch.
        longest_ms: the longest delay of a host or server in their settings.
    """

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
) -> Call[Company]:
    """Announce that a node of a crawl is alive, or leaves. The result describes the other crawls.

    Args:
        node: its id.
        crawl: its crawl's name.
        lease_ms: how long it counts as alive.
        delay_ms: its longest delay of a host or server.
        holds: whether it holds the hosts that it fetches.
        leave: whether it leaves.
        rest_ms: how long it counts as alive after it has left: as long as its hosts rest still.
        now_ms: the time; 0: the server's.
    """

    def parse(reply: list[int]) -> Company:
        return Company(bool(reply[0]), bool(reply[1]), int(reply[2]))

    args = (now_ms, node, crawl, lease_ms, int(holds), delay_ms, 0 if leave else 1, rest_ms)
    return Call("meet_crawls", (CRAWLS,), args, parse)


def beat_node(
    keys: CrawlKeys, node: str, report: str, lease_ms: int, *, leave: bool = False, now_ms: int = 0
) -> Call[dict[str, str]]:
    """Send a node's heartbeat. The result maps each live node to its report."""

    def parse(reply: list[Any]) -> dict[str, str]:
        names = [value.decode() for value in reply[1:]]
        return dict(zip(names[::2], names[1::2], strict=True))

    return Call("beat_node", (keys.nodes, keys.beats), (now_ms, node, report, lease_ms, 0 if leave else 1), parse)


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
    """Claim, renew, finish, or give up the start requests. Result: 1 this node's, 0 another's or nobody's, 2 done."""
    action = 2 if done else 3 if undone else 1
    return Call("claim_start", (keys.crawl,), (now_ms, node, start_digest, lease_ms, action), int)


def note_errors(keys: CrawlKeys, rows: Sequence[tuple[str, int, str]], kept_max: int, now_ms: int = 0) -> Call[int]:
    """Count failed fetches; a row is reason and PLD with a line break between them, fetches, URL of one. Result: 1."""
    args = (now_ms, kept_max, *(word for row in rows for word in row))
    return Call("note_errors", (keys.errors, keys.examples), args, int)
