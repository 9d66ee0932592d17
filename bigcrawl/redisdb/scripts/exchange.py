"""URLs that are taken, and those that have ended: the call that is made for almost every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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


class Ended(NamedTuple):
    """How one taken URL ended; `member` "" acknowledges, "=" returns it as it was, else it is the next try.

    `health` is what it says of its host: "" nothing, "+" it answers, else a failure as `HostFailure.word` has it.
    Of its host's delay, `waited_ms` are over when this is told.
    """

    seq: int
    delay_ms: int
    member: bytes = b""
    counter: str = ""
    fetched_bytes: int = 0
    health: str = ""
    waited_ms: int = 0


ANSWERS = "+"
"""The `health` of an end: the host answers."""


def answers(order: int | None) -> str:
    """Return the `health` of an end whose host answers, with the next try's place in its queue; None: the old one."""
    return ANSWERS if order is None else f"{ANSWERS}{order}"


def elsewhere(order: int) -> str:
    """Return the `health` of an end that says nothing of the host, but the URL has another place in its queue now."""
    return f">{order}"


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
        args += end

    def parse(reply: list[Any]) -> Exchanged:
        if reply[0] < 0:
            refuse(keys, reply[0])
        rows = zip(map(bytes.decode, reply[3::3]), reply[4::3], reply[5::3], strict=True)
        urls = [_new_tuple(TakenUrl, row) for row in rows]
        return _new_tuple(Exchanged, (reply[0], reply[1], reply[2], urls))

    return Call("exchange_urls", keys.for_exchange, tuple(args), parse, keys.partition)
