"""Arithmetic: from the lines of the server's log to what was fetched when. No I/O, no clock."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.model.names import FARM_MARK, HOMES_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from bigcrawl_simweb.serve.access_log import LogLine

SHARES: Final = (0.5, 0.9, 0.99, 1.0)
_ROBOTS: Final = "/robots.txt"


class Point(NamedTuple):
    """What was fetched until a moment, in seconds since the first request: pages, each counted once."""

    at_s: float
    legit: int
    spam: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A crawl as its server saw it.

    Attributes:
        reachable: legitimate URLs that the seeds lead to, whatever their status.
        reached_s: by share of them, when so many had been fetched, in seconds since the first request; None: never.
        seconds: from the first request to the end of the last one.
        legit, spam: URLs fetched, without robots.txt files; legitimate ones only if `reachable` has them.
        fetches_until: fetches of all kinds by then, robots.txt files and repeats included, by the shares of
            `reached_s`: what is left to compare where the machine had other work, and times mean little.
        spam_until: spam fetched by then, likewise.
        robots_legit, robots_spam: robots.txt files fetched.
        spam_of: spam pages by pay-level domain.
        curve: a point every `interval_s`, and one at the end.
    """

    reachable: int
    reached_s: dict[float, float | None]
    seconds: float
    legit: int
    spam: int
    fetches_until: dict[float, int | None]
    spam_until: dict[float, int | None]
    robots_legit: int
    robots_spam: int
    spam_of: dict[str, int] = field(default_factory=dict)
    curve: tuple[Point, ...] = ()


def is_spam(url: str) -> bool:
    """Whether a host of the simulated web is a farm's, or a URL there or in a made-up directory."""
    return FARM_MARK in url


def is_home(url: str) -> bool:
    """Whether a URL is in a home directory of a shared domain, not in one that spam has made up."""
    return HOMES_MARK in url and not is_spam(url)


def url_of(line: LogLine) -> str:
    """The URL that a line is about, without the port."""
    return f"http://{line.host}{line.target}"


def timeline_of(
    lines: Iterable[LogLine], reachable: Collection[str], pld_of: Callable[[str], str], interval_s: float = 10
) -> Timeline:
    """Count a log.

    Args:
        lines: in any order; those that the crawler gave up do not count.
        reachable: the legitimate URLs, as `url_of` has them; quick to look up in.
        pld_of: the pay-level domain of a host.
        interval_s: of the curve, above 0.

    Raises:
        ValueError: there are no lines.
    """
    done = sorted((line for line in lines if line.status != ABORTED_STATUS), key=lambda line: line.end_ms)
    if not done:
        raise ValueError("nothing was fetched")
    start_ms = min(line.start_ms for line in done)
    wanted = [(max(1, math.ceil(share * len(reachable))), share) for share in SHARES]
    reached_s: dict[float, float | None] = dict.fromkeys(SHARES)
    fetches_until: dict[float, int | None] = dict.fromkeys(SHARES)
    spam_until: dict[float, int | None] = dict.fromkeys(SHARES)
    seen: set[str] = set()
    robots: Counter[bool] = Counter()
    spam_of: Counter[str] = Counter()
    curve: list[Point] = []
    legit = spam = 0
    for fetches, line in enumerate(done, 1):
        at_s = (line.end_ms - start_ms) / 1000
        while at_s >= (len(curve) + 1) * interval_s:
            curve.append(Point((len(curve) + 1) * interval_s, legit, spam))
        url = url_of(line)
        if line.target == _ROBOTS:
            robots[is_spam(line.host)] += 1
        elif url not in seen:
            seen.add(url)
            if is_spam(url):
                spam += 1
                spam_of[pld_of(line.host)] += 1
            elif url in reachable:
                legit += 1
                for count, share in wanted:
                    if count == legit:
                        reached_s[share], fetches_until[share], spam_until[share] = at_s, fetches, spam
    seconds = (done[-1].end_ms - start_ms) / 1000
    return Timeline(
        reachable=len(reachable),
        reached_s=reached_s,
        seconds=seconds,
        legit=legit,
        spam=spam,
        fetches_until=fetches_until,
        spam_until=spam_until,
        robots_legit=robots[False],
        robots_spam=robots[True],
        spam_of=dict(spam_of),
        curve=(*curve, Point(seconds, legit, spam)),
    )


def ratio(mine: float | None, clean: float | None) -> float | None:
    """How many times as much it took; None where either never got there."""
    return mine / clean if mine is not None and clean else None
