"""URLs that are taken, and those that have ended: the call that is made for almost every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from bigcrawl.redisdb.scripts.call import Call, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity, Value


class TakenUrl(NamedTuple):
    """A URL handed out: its host, when it may be fetched (server ms), and its member."""

    host: str
    due_ms: int
    member: bytes


class Exchanged(NamedTuple):
    """The reply of `exchange_urls`.

    Attributes:
        now_ms: server time.
        next_due_ms: when a host of the partition may next be taken, server time; -1 when none waits.
        ended: URLs that were still taken and ended.
        urls: what was taken.
    """

    now_ms: int
    next_due_ms: int
    ended: int
    urls: list[TakenUrl]


_Blank = Literal[""]

ANSWERS: Final = "+"
"""The `health` of a host that answers."""


class HostNews(NamedTuple):
    """What the end of a URL says of its host, and where the URL's next try stands.

    The fields are arguments of the script as they are; most are "" for most ends, which costs least to send.

    Attributes:
        health: "" says nothing of the host; `ANSWERS`, or why the host has failed.
        order: the next try's place in its host's queue; "" for the old one.
        first_ms: how long the host is left alone after its first failure in a row; each further one makes it four
            times as long. Like the rest, "" for a host that has not failed.
        longest_ms: how long it is left alone at most.
        jitter: thousandths of this time that are added to it.
        failures_max: the failures in a row that retire the host; 0 for no such number.
    """

    health: str = ""
    order: int | _Blank = ""
    first_ms: int | _Blank = ""
    longest_ms: int | _Blank = ""
    jitter: int | _Blank = ""
    failures_max: int | _Blank = ""


NO_NEWS: Final = HostNews()
_ANSWERED: Final = HostNews(ANSWERS)


def moved(order: int | None) -> HostNews:
    """The end says nothing of the host; the next try stands at `order`, or at its old place."""
    return NO_NEWS if order is None else HostNews("", order)


def answers(order: int | None = None) -> HostNews:
    """The host answers; the next try stands at `order`, or at its old place."""
    return _ANSWERED if order is None else HostNews(ANSWERS, order)


def fails(why: str, backoff: tuple[int, int, int, int], order: int | None = None) -> HostNews:
    """The host has failed, and is left alone as `backoff` says: the last four fields of `HostNews`."""
    return HostNews(why, "" if order is None else order, *backoff)


class Ended(NamedTuple):
    """How one taken URL ended; `member` "" acknowledges, "=" returns it as it was, else it is the next try.

    Of its host's delay, `waited_ms` are over when this is told.
    """

    seq: int
    delay_ms: int
    member: bytes = b""
    counter: str = ""
    fetched_bytes: int = 0
    news: HostNews = NO_NEWS
    waited_ms: int = 0


# Named tuples' own constructors are Python; this one is not.
_new_tuple = tuple.__new__


def exchange_urls(
    keys: PartitionKeys,
    who: Identity,
    connections: int,
    urls_max: int,
    horizon_ms: int,
    delay_ms: int,
    ended: Sequence[Ended] = (),
    now_ms: int = 0,
    outcomes: bytes = b"",
) -> Call[Exchanged]:
    """End taken URLs, then take URLs of hosts due within the horizon, earliest due first.

    `outcomes` are those of the acknowledged ones, see `bigcrawl.scheduler.records.outcomes`.
    """
    args: list[Value] = [now_ms, who.node, who.epoch, who.generation, connections, urls_max, horizon_ms, delay_ms]
    args.append(outcomes)
    for end in ended:
        args += end[:5]
        args += end.news
        args.append(end.waited_ms)

    def parse(reply: list[Any]) -> Exchanged:
        if reply[0] < 0:
            refuse(keys, reply[0])
        rows = zip(map(bytes.decode, reply[3::3]), reply[4::3], reply[5::3], strict=True)
        urls = [_new_tuple(TakenUrl, row) for row in rows]
        return _new_tuple(Exchanged, (reply[0], reply[1], reply[2], urls))

    return Call("exchange_urls", keys.for_exchange, tuple(args), parse, keys.partition)
