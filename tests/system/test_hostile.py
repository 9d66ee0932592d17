"""A crawl of a hostile web with everything on: polite, complete as far as policy allows, each URL accounted for.

The same while the machine's clock jumps, and while a node is stopped and continued. A node's clock that differs from
Redis', and a node that is stopped alone, are tried by `make test-hostile`.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from bigcrawl_simweb.basics.line_file import now_ms
from tests.support.crawling.crawls import second_process_of, shares
from tests.support.crawling.verdicts import pause
from tests.support.hostile.accounts import Truth, accounts_of, summary, wrong
from tests.support.hostile.shifted_clock import ShiftedClock
from tests.support.hostile.web import URLS_MIN, hostile_web, unhandled
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Report
    from tests.support.crawling.crawls import Crawl
    from tests.support.hostile.web import HostileWeb

pytestmark = [pytest.mark.system, pytest.mark.timeout(1200)]

CRAWL_S = 900
HOUR_S = 3600
JUMP_EVERY_S = 3.0
STOP_S = 60
LEASE_S = 10


class Ended(NamedTuple):
    """A crawl at its end, and what the web's log says of it."""

    hostile: HostileWeb
    crawl: Crawl
    report: Report


@pytest.fixture(scope="class")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """Nothing disturbs this crawl but what it crawls."""
    work = tmp_path_factory.mktemp("calm")
    with hostile_web(work) as hostile, hostile.crawl(work / "crawl") as crawl:
        assert crawl.run(CRAWL_S) == 0
        yield Ended(hostile, crawl, hostile.hold())


class TestCalm:
    """One crawl; its web and its name server are gone before the next."""

    def test_crawl_is_polite_and_complete(self, calm: Ended) -> None:
        """No violation of any kind by the server's log; every URL that policy allows was asked for."""
        assert not calm.report.kinds, str(calm.report)
        assert len(calm.hostile.expected) > URLS_MIN

    def test_no_exception_is_unhandled(self, calm: Ended) -> None:
        """Whatever servers send, the log has no traceback but of fetches that failed."""
        assert not unhandled(calm.crawl)

    def test_every_url_that_was_not_fetched_is_accounted_for(self, calm: Ended) -> None:
        """Forbidden, withheld, of a host that is retired, or never linked to where a correct crawler looks."""
        truth = Truth(calm.hostile)
        accounts = accounts_of(calm.crawl, truth.not_asked_for())
        states = summary(accounts)
        assert not wrong(truth, accounts), states
        assert {"dropped:forbidden", "retired", "withheld"} <= states.keys()


@pytest.mark.parametrize("whose", [pytest.param("node", marks=pytest.mark.fault), "machine"])
def test_clock_may_jump(tmp_path: Path, whose: str) -> None:
    """The wall clock set by hours, forward and back, of the crawling node or of Redis too: all as ever."""
    moments = random.Random(1)
    with (
        hostile_web(tmp_path) as hostile,
        hostile.crawl(tmp_path / "crawl") as crawl,
        PrivateRedis() as server,
    ):
        if whose == "node":
            crawl.settings["BIGCRAWL_REDIS_URL"] = server.url
        clock = ShiftedClock(tmp_path / "clock")
        crawl.environment, crawl.cold = clock.environment, True
        process = crawl.start()
        jumps = 0
        while process.poll() is None and jumps * JUMP_EVERY_S < CRAWL_S:
            pause(JUMP_EVERY_S)
            clock.set(moments.uniform(-30, 30) * HOUR_S)
            jumps += 1
        assert crawl.wait(1) == 0
        assert jumps > 3, "the crawl ended before the clock had jumped much"
        report = hostile.hold()
        assert not report.kinds, str(report)
        assert not unhandled(crawl)


@pytest.mark.fault
def test_node_may_be_stopped_for_a_minute(tmp_path: Path) -> None:
    """SIGSTOP for 60 s, six leases long, and on: complete and polite; only what was in process is fetched again."""
    with hostile_web(tmp_path) as hostile, hostile.crawl(tmp_path / "crawl") as crawl:
        crawl.settings["BIGCRAWL_LEASE_SECONDS"] = LEASE_S
        process = crawl.start()
        wait_until(lambda: _is_under_way(hostile), "the crawl is under way", 120)
        process.send_signal(signal.SIGSTOP)
        may_repeat = Counter(crawl.taken())
        pause(STOP_S)
        process.send_signal(signal.SIGCONT)
        assert crawl.wait(CRAWL_S) == 0
        report = hostile.hold(may_repeat)
        assert not report.kinds, str(report)
        assert not unhandled(crawl)


def test_stopped_node_does_no_harm_to_one_that_goes_on(tmp_path: Path) -> None:
    """A second node takes over what the first had while that sleeps; both go on together when it wakes."""
    with (
        hostile_web(tmp_path) as hostile,
        hostile.crawl(tmp_path / "crawl") as first,
        second_process_of(first) as second,
    ):
        first.settings["BIGCRAWL_LEASE_SECONDS"] = second.settings["BIGCRAWL_LEASE_SECONDS"] = LEASE_S
        process = first.start()
        wait_until(lambda: _is_under_way(hostile), "the crawl is under way", 120)
        second.start()
        wait_until(lambda: shares(first) == [8, 8], "each node owns half", 300)
        began_ms = now_ms()
        process.send_signal(signal.SIGSTOP)
        may_repeat = Counter(first.taken())
        pause(STOP_S / 2)
        wait_until(lambda: max(shares(first)) == 16, "the other owns all", 300)
        pause(began_ms / 1000 + STOP_S - now_ms() / 1000)
        process.send_signal(signal.SIGCONT)
        asleep_ms = began_ms, now_ms()
        assert first.wait(CRAWL_S) == 0
        assert second.wait(300) == 0
        report = hostile.hold(may_repeat, asleep_ms)
        assert not report.kinds, str(report)
        assert not unhandled(first) + unhandled(second)


def _is_under_way(hostile: HostileWeb) -> bool:
    return len(hostile.served.log.read_bytes().splitlines()) > len(hostile.expected) // 4
