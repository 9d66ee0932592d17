"""One fault of each kind, planted into the log of a polite crawl: no other rule is broken by it.

The log is cut at some moment and what follows put off; in the silence between, hosts of their own do wrong. A
fault is planted at the very edge, a millisecond beyond what the rules and the tolerance allow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl_simweb.basics.exchange import Exchange
from tests.support.worlds.polite_schedule import EPOCH_MS, PERIOD_MS, pld_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl_simweb.check.rules import CheckRules
    from bigcrawl_simweb.model.expectations import Expected
    from tests.support.worlds.polite_schedule import Schedule

# Longer than any delay that is drawn, and any exchange.
QUIET_MS = 200
HOST = "rude.three.test"
SIBLING = "other.three.test"
STRANGER = "rude.four.test"


@dataclass
class Planter:
    """Adds exchanges to a log at a moment of its own, `now_ms`.

    Attributes:
        fetches: the exchanges that were planted.
        expected: what the rules are to expect besides.
    """

    rules: CheckRules
    now_ms: int
    fetches: list[Exchange] = field(default_factory=list)
    expected: dict[str, int | Expected] = field(default_factory=dict)

    def fetch(
        self,
        target: str,
        status: int = 200,
        *,
        host: str = HOST,
        server: str = "",
        lasts_ms: int = 0,
        fault: str = "",
        wait_ms: int = 0,
        expect: bool = True,
    ) -> None:
        """Fetch now; the clock stays."""
        end_ms = self.now_ms + lasts_ms
        self.fetches.append(Exchange(self.now_ms, end_ms, host, target, status, server, fault, wait_ms))
        if expect and target != "/robots.txt":
            self.expected[f"http://{host}{target}"] = status

    def rest(self, ms: int = QUIET_MS) -> None:
        self.now_ms += ms

    def greet(self, *hosts: str) -> None:
        """Fetch robots.txt, politely."""
        for host in hosts or (HOST,):
            self.fetch("/robots.txt", host=host)
            self.rest()


def _missing(planter: Planter) -> None:
    planter.expected[f"http://{HOST}/never"] = 200


def _unexpected(planter: Planter) -> None:
    planter.greet()
    planter.fetch("/phantom", 404, expect=False)


def _wrong_status(planter: Planter) -> None:
    planter.greet()
    planter.fetch("/gone")
    planter.expected[f"http://{HOST}/gone"] = 404


def _refetched(planter: Planter) -> None:
    planter.greet()
    for _ in range(2):
        planter.fetch("/twice")
        planter.rest()


def _over_retried(planter: Planter) -> None:
    planter.greet()
    for number in range(planter.rules.retries + 2):
        planter.fetch("/failing", 500, fault="cut" if number % 2 else "")
        planter.rest()


def _concurrent(planter: Planter) -> None:
    """As many as may be open, all of which end together, and one more in their last millisecond."""
    planter.greet()
    number = planter.rules.host_connections
    for count in range(number):
        planter.fetch(f"/{count}", lasts_ms=QUIET_MS * (number - count))
        planter.rest()
    planter.rest(-1)
    planter.fetch("/too-many")


def _host_too_soon(planter: Planter) -> None:
    """The delay is from end to start, or between starts when there are several connections."""
    planter.greet()
    lasts_ms = QUIET_MS if planter.rules.host_connections == 1 else 0
    planter.fetch("/first", server="192.0.2.8", lasts_ms=lasts_ms)
    planter.rest(lasts_ms + planter.rules.host_delay_ms - planter.rules.tolerance_ms - 1)
    planter.fetch("/second", server="192.0.2.9")


def _pld_concurrent(planter: Planter) -> None:
    """As `_concurrent`, each request to another host."""
    number = planter.rules.pld_connections
    hosts = [f"{count}.three.test" for count in range(number + 1)]
    planter.greet(*hosts)
    for count in range(number):
        planter.fetch("/", host=hosts[count], lasts_ms=QUIET_MS * (number - count))
        planter.rest()
    planter.rest(-1)
    planter.fetch("/", host=hosts[-1])


def _pld_too_soon(planter: Planter) -> None:
    planter.greet(HOST, SIBLING)
    lasts_ms = QUIET_MS if planter.rules.pld_connections == 1 else 0
    planter.fetch("/first", lasts_ms=lasts_ms)
    planter.rest(lasts_ms + planter.rules.pld_delay_ms - planter.rules.tolerance_ms - 1)
    planter.fetch("/second", host=SIBLING)


def _server_too_soon(planter: Planter) -> None:
    planter.greet(HOST, STRANGER)
    planter.fetch("/first", server="192.0.2.9")
    planter.rest(planter.rules.server_delay_ms - planter.rules.tolerance_ms - 1)
    planter.fetch("/second", host=STRANGER, server="192.0.2.9")


def _retry_after_ignored(planter: Planter) -> None:
    planter.greet()
    planter.fetch("/busy", 429, lasts_ms=10, wait_ms=2 * QUIET_MS)
    planter.rest(10 + 2 * QUIET_MS - planter.rules.tolerance_ms - 1)
    planter.fetch("/other")


def _disallowed(planter: Planter) -> None:
    planter.greet()
    planter.fetch("/private/1", expect=False)


def _robots_not_first(planter: Planter) -> None:
    planter.fetch("/")
    planter.rest()
    planter.greet()


def _robots_stale(planter: Planter) -> None:
    planter.fetch("/robots.txt", lasts_ms=10)
    planter.rest(10 + planter.rules.robots_max_age_ms + planter.rules.tolerance_ms + 1)
    planter.fetch("/")


def _robots_refetched(planter: Planter) -> None:
    planter.fetch("/robots.txt", lasts_ms=10)
    planter.rest(10 + PERIOD_MS - planter.rules.tolerance_ms - 1)
    planter.fetch("/robots.txt")


def _too_deep(planter: Planter) -> None:
    assert planter.rules.endless_max is not None
    planter.greet()
    for day in range(planter.rules.endless_max + 1):
        planter.fetch(f"/calendar/{day}", expect=False)
        planter.rest()


def _nofollowed(planter: Planter) -> None:
    planter.rules = replace(planter.rules, nofollow={f"http://{HOST}/aside"})
    planter.greet()
    planter.fetch("/aside", expect=False)


class Fault(NamedTuple):
    """How to plant a kind of fault, and what the rules of the schedule must be for it."""

    plant: Callable[[Planter], None]
    needs: dict[str, Any] = {}  # noqa: RUF012 - never written to


FAULTS = {
    "missing": Fault(_missing),
    "unexpected": Fault(_unexpected),
    "wrong_status": Fault(_wrong_status),
    "refetched": Fault(_refetched),
    "over_retried": Fault(_over_retried),
    "concurrent": Fault(_concurrent, {"pld_of": None}),
    "host_too_soon": Fault(_host_too_soon, {"pld_of": None, "host_delay_ms": 30}),
    "pld_concurrent": Fault(_pld_concurrent, {"pld_of": pld_of}),
    "pld_too_soon": Fault(_pld_too_soon, {"pld_of": pld_of, "pld_delay_ms": 30}),
    "server_too_soon": Fault(_server_too_soon, {"server_delay_ms": 30}),
    "retry_after_ignored": Fault(_retry_after_ignored),
    "disallowed": Fault(_disallowed),
    "robots_not_first": Fault(_robots_not_first),
    "robots_stale": Fault(_robots_stale),
    "robots_refetched": Fault(_robots_refetched, {"robots_period_ms": PERIOD_MS}),
    "too_deep": Fault(_too_deep),
    "nofollowed": Fault(_nofollowed),
}


def planted(schedule: Schedule, kind: str, cut: int) -> tuple[list[Exchange], CheckRules]:
    """The schedule's log with a fault after `cut` of its exchanges, and the rules to hold it to."""
    log = sorted(schedule.log, key=lambda exchange: exchange.start_ms)
    before, after = log[:cut], log[cut:]
    planter = Planter(schedule.rules, max((exchange.end_ms for exchange in before), default=EPOCH_MS) + QUIET_MS)
    FAULTS[kind].plant(planter)
    if after:
        ended_ms = max((exchange.end_ms for exchange in planter.fetches), default=planter.now_ms)
        shift_ms = ended_ms + QUIET_MS - after[0].start_ms
        after = [replace(e, start_ms=e.start_ms + shift_ms, end_ms=e.end_ms + shift_ms) for e in after]
    rules = replace(planter.rules, expected=schedule.expected | planter.expected)
    return [*before, *planter.fetches, *after], rules
