"""The call that takes URLs and reports how others ended. It is made for almost every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from bigcrawl.redisdb.scripts.call import Call, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity, Value


class TakenUrl(NamedTuple):
    """A taken URL: its host, the ms from which it may be fetched (time of the crawls), and its member."""

    host: str
    due_ms: int
    member: bytes


class Exchanged(NamedTuple):
    """The reply of `exchange_urls`.

    Attributes:
        now_ms: the time of the crawls.
        next_due_ms: when a host of the partition is next due, in the same time; -1 if no URL waits.
        ended: how many URLs were ended. URLs that were not taken any more do not count.
        urls: the URLs taken.
        ahead: how many of them, the first ones, were taken ahead of their hosts' turns.
    """

    now_ms: int
    next_due_ms: int
    ended: int
    urls: list[TakenUrl]
    ahead: int = 0


_Blank = Literal[""]

ANSWERS: Final = "+"
"""The `health` of a host that has answered."""


class HostNews(NamedTuple):
    """What the end of a URL says about its host, and the place of the URL's next try.

    The fields are passed to the script unchanged. Most are "" for most ends, which is cheapest to send.

    Attributes:
        health: `ANSWERS`, or the reason why the host has failed; "" if the end says nothing about the host.
        order: the next try's place in its host's queue; "" for its old place.
        first_ms: back-off after the first failure in a row; each further failure multiplies it by four. This and the
            following fields are "" if the host has not failed.
        longest_ms: longest back-off.
        jitter: thousandths of the back-off that are added to it.
        failures_max: how many failures in a row retire the host; 0 if none do.
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
    """Return news that says nothing about the host. The next try goes to `order`, or to its old place."""
    return NO_NEWS if order is None else HostNews("", order)


def answers(order: int | None = None) -> HostNews:
    """Return news of a host that has answered. A next try goes to `order`, or to its old place."""
    return _ANSWERED if order is None else HostNews(ANSWERS, order)


def fails(why: str, backoff: tuple[int, int, int, int], order: int | None = None) -> HostNews:
    """Return news of a host that has failed. `backoff` has the last four fields of `HostNews`."""
    return HostNews(why, "" if order is None else order, *backoff)


class Ended(NamedTuple):
    """How one taken URL ended.

    Attributes:
        seq: the URL's sequence number.
        delay_ms: how long its host rests.
        member: "" acknowledges the URL, "=" returns it unchanged; otherwise the member of its next try.
        counter: a counter of the partition to raise, or "".
        fetched_bytes: bytes to add to the counter of bytes.
        news: about the host.
        waited_ms: how much of `delay_ms` has passed before this is sent.
    """

    seq: int
    delay_ms: int
    member: bytes = b""
    counter: str = ""
    fetched_bytes: int = 0
    news: HostNews = NO_NEWS
    waited_ms: int = 0


# Faster than the named tuples' own constructors, which are Python.
_new_tuple = tuple.__new__


def exchange_urls(
    keys: PartitionKeys,
    identity: Identity,
    connections: int,
    urls_max: int,
    horizon_ms: int,
    delay_ms: int,
    ended: Sequence[Ended] = (),
    now_ms: int = 0,
    outcomes: bytes = b"",
    revisits: bytes = b"",
    ahead: Sequence[tuple[str, int]] = (),
) -> Call[Exchanged]:
    """End taken URLs, then take so many URLs each of the hosts `ahead`, then of hosts due within the horizon.

    The hosts that are due give one each, earliest due first. Those `ahead` give theirs unless they must rest beyond the
    horizon, however many are taken: the node paces them.
    `outcomes` has the outcomes of the acknowledged URLs, see `bigcrawl.scheduler.records.outcomes`, and `revisits`
    those URLs that are to be visited again, see `bigcrawl.scheduler.records.revisits`.
    """
    args: list[Value] = [now_ms, identity.node, identity.epoch, identity.generation]
    args += [connections, urls_max, horizon_ms, delay_ms, outcomes, revisits, len(ahead)]
    for host, most in ahead:
        args += (host, most)
    for end in ended:
        args += end[:5]
        args += end.news
        args.append(end.waited_ms)

    def parse(reply: list[Any]) -> Exchanged:
        if reply[0] < 0:
            refuse(keys, reply[0])
        rows = zip(map(bytes.decode, reply[4::3]), reply[5::3], reply[6::3], strict=True)
        urls = [_new_tuple(TakenUrl, row) for row in rows]
        return _new_tuple(Exchanged, (reply[0], reply[1], reply[2], urls, reply[3]))

    return Call("exchange_urls", keys.for_exchange, tuple(args), parse, keys.partition)
