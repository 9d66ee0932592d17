"""A node of another machine dies, is stopped, or is cut off from Redis: its hosts rest for no longer than they must.

That is, for its lease and the seconds it needs to give up its fetches, not for the deadline of a fetch. Without its
lock file a node cannot be told from one of another machine.
"""

from __future__ import annotations

import itertools
import signal
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.owner.claiming.claims import ABORT_MS
from tests.support.crawling.crawls import Crawl, second_process_of, shares
from tests.support.crawling.verdicts import assert_complete, pause
from tests.support.redis_servers.faulty_link import FaultyLink
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Exchange
    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

LEASE_S = 6
DEADLINE_S = 300
DELAY_S = 1
# The claim comes with a heartbeat, a second later at most; then files are opened, on a machine that may be busy.
CLAIM_S = 8
REST_S_MAX = LEASE_S + ABORT_MS / 1000 + DELAY_S + CLAIM_S
SETTINGS = {
    "BIGCRAWL_HOST_DELAY": DELAY_S,
    "BIGCRAWL_PARTITIONS": 16,
    "BIGCRAWL_LEASE_SECONDS": LEASE_S,
    "BIGCRAWL_FETCH_DEADLINE": DEADLINE_S,
}


def longest_rests_s(exchanges: list[Exchange]) -> tuple[float, float]:
    """For how long nothing was fetched, and nothing from one host, at the most, in seconds."""
    hosts: defaultdict[str, list[int]] = defaultdict(list)
    for each in exchanges:
        hosts[each.host].append(each.start_ms)
    longest_ms = max(map(longest_gap, hosts.values()))
    return longest_gap(each.start_ms for each in exchanges) / 1000, longest_ms / 1000


def longest_gap(times: Iterable[int]) -> int:
    return max((two - one for one, two in itertools.pairwise(sorted(times))), default=0)


def locks(crawl: Crawl) -> set[Path]:
    return set((crawl.directory / "state" / crawl.name / "nodes").glob("*.lock"))


@pytest.mark.parametrize("how", ["killed", "stopped", "cut off"])
def test_hosts_of_a_far_node_rest_for_its_lease_only(
    tmp_path: Path, web: SimulatedWeb, how: str, record_property: Callable[[str, object], None]
) -> None:
    """They rest no longer than lease, time to give up fetches, and delay; the crawl ends complete and polite."""
    may_repeat: Counter[str] = Counter()
    with PrivateRedis() as server, FaultyLink(server.socket_path, every_s=3_600, silent_s=0) as link:
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": server.url}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as first, second_process_of(first) as second:
            second.settings["BIGCRAWL_REDIS_URL"] = link.url
            first.start()
            wait_until(lambda: len(web.exchanges()) > 100, "the crawl is under way")
            before = locks(first)
            second.start()
            wait_until(lambda: shares(first) == [8, 8], "each node owns half", timeout_s=60)
            known = len(web.exchanges())
            wait_until(lambda: len(web.exchanges()) > known + 100, "both fetch")
            may_repeat.update(first.taken())
            assert second.process is not None
            if how == "killed":
                second.kill()
            elif how == "stopped":
                second.process.send_signal(signal.SIGSTOP)
            else:
                link.cut()
            [lock] = locks(first) - before
            lock.unlink()  # as if it were on another machine
            may_repeat.update(first.taken())
            wait_until(lambda: shares(first) == [16], "the first owns all", timeout_s=120)
            if how == "stopped":
                pause(2)  # the others fetch from its hosts meanwhile
                second.process.send_signal(signal.SIGCONT)
            elif how == "cut off":
                pause(2)
                link.heal()
            assert first.wait(240) == 0
            if how != "killed":
                assert second.wait(120) == 0
    still_s, rest_s = longest_rests_s(web.exchanges())
    told = f"{how}: nothing was fetched for {still_s:.1f} s, and from one host for {rest_s:.1f} s"
    record_property("stood still", told)
    assert max(still_s, rest_s) < REST_S_MAX, told
    assert_complete(web.report(delay_ms=1_000), may_repeat)
