"""The call that takes URLs and reports the ends of others, made for almost every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from bigcrawl.redisdb.scripts.call import Call, Identity, Value, raise_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys


class TakenUrl(NamedTuple):
    """A taken URL; `due_ms` is the crawls' time from which it may be fetched."""

    host: str
    due_ms: int
    member: bytes


class ExchangeReply(NamedTuple):
    """The reply of `exchange_urls`.

    Attributes:
        next_due_ms: when a host of the partition is next due; -1 if no URL waits.
        ended: how many of the ended URLs were still taken.
        ahead: how many of `urls`, which come first, were taken ahead of their hosts' turns.
    """

    now_ms: int
    next_due_ms: int
    ended: int
    urls: list[TakenUrl]
    ahead: int = 0


_Blank = Literal[""]

ANSWERS: Final = "+"


class HostEffect(NamedTuple):
    """The effect of a URL's end on its host; empty fields have none, and are cheapest to send.

    Attributes:
        health: `ANSWERS`, or why the host failed.
        order: the next try's place in its host's queue; "" for its old place.
        first_ms: back-off after the first failure in a row; each further failure multiplies it by four.
        jitter: thousandths of the back-off that are added to it.
        failures_max: this many failures in a row retire the host; 0 for never.
    """

    health: str = ""
    order: int | _Blank = ""
    first_ms: int | _Blank = ""
    longest_ms: int | _Blank = ""
    jitter: int | _Blank = ""
    failures_max: int | _Blank = ""


NO_EFFECT: Final = HostEffect()
_ANSWERED: Final = HostEffect(ANSWERS)


def effect_of_move(order: int | None) -> HostEffect:
    return NO_EFFECT if order is None else HostEffect("", order)


def effect_of_answer(order: int | None = None) -> HostEffect:
    return _ANSWERED if order is None else HostEffect(ANSWERS, order)


def effect_of_failure(why: str, backoff: tuple[int, int, int, int], order: int | None = None) -> HostEffect:
    return HostEffect(why, "" if order is None else order, *backoff)


class EndedUrl(NamedTuple):
    """The end of a taken URL.

    Attributes:
        delay_ms: how long its host rests.
        member: "" acknowledges the URL, "=" returns it unchanged; otherwise the member of its next try.
        waited_ms: the part of `delay_ms` that has passed.
    """

    seq: int
    delay_ms: int
    member: bytes = b""
    counter: str = ""
    fetched_bytes: int = 0
    effect: HostEffect = NO_EFFECT
    waited_ms: int = 0


_new_tuple = tuple.__new__


def exchange_urls(
    keys: PartitionKeys,
    identity: Identity,
    connections: int,
    urls_max: int,
    horizon_ms: int,
    delay_ms: int,
    ended: Sequence[EndedUrl] = (),
    now_ms: int = 0,
    outcomes: bytes = b"",
    timed: bytes = b"",
    ahead: Sequence[tuple[str, int]] = (),
) -> Call[ExchangeReply]:
    """End taken URLs, then take URLs of the hosts `ahead`, up to a number each, and of hosts due within the horizon.

    Due hosts give one each, earliest first. The node paces hosts `ahead`.
    """
    args: list[Value] = [now_ms, identity.node, identity.epoch, identity.generation]
    args += [connections, urls_max, horizon_ms, delay_ms, outcomes, timed, len(ahead)]
    for host, most in ahead:
        args += (host, most)
    for end in ended:
        args += end[:5]
        args += end.effect
        args.append(end.waited_ms)

    def parse(reply: list[Any]) -> ExchangeReply:
        if reply[0] < 0:
            raise_refusal(keys, reply[0])
        rows = zip(map(bytes.decode, reply[4::3]), reply[5::3], reply[6::3], strict=True)
        urls = [_new_tuple(TakenUrl, row) for row in rows]
        return _new_tuple(ExchangeReply, (reply[0], reply[1], reply[2], urls, reply[3]))

    return Call("exchange_urls", keys.for_exchange, tuple(args), parse, keys.partition)
