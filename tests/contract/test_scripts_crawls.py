"""Crawls that share a server: who lives, and whose turn it is at a host that several of them fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CRAWLS, host_prefix
from bigcrawl.redisdb.scripts import CrawlCompany
from tests.support.redis_servers.script_world import LEASE_MS, T0, ScriptRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

ALONE = CrawlCompany(has_others=False, all_hold=True, longest_ms=0)
DELAY_MS = 1_000
MOST_MS = 60_000
TURN_MS = 1_000


@pytest.fixture
def meeting(runner: ScriptRunner) -> Iterator[ScriptRunner]:
    """Nobody is listed."""
    runner.client.delete(CRAWLS)
    yield runner
    runner.client.delete(CRAWLS)


def beat(
    runner: ScriptRunner, at_ms: int, node: str, *, holds: bool = True, delay_ms: int = 5, rest_ms: int | None = None
) -> CrawlCompany:
    """A sign of life of a node, or with a rest its last one; its first letter is its crawl."""
    leave = rest_ms is not None
    call = scripts.meet_crawls(
        node, node[0], LEASE_MS, delay_ms, holds=holds, leave=leave, rest_ms=rest_ms or 0, now_ms=T0 + at_ms
    )
    company: CrawlCompany = runner.run(call)
    return company


def test_nodes_of_one_crawl_are_alone(meeting: ScriptRunner) -> None:
    assert [beat(meeting, 0, "a1"), beat(meeting, 1, "a2"), beat(meeting, 2, "a1")] == [ALONE] * 3


def test_newcomer_waits_until_all_nodes_of_the_other_crawl_hold_their_hosts(meeting: ScriptRunner) -> None:
    """Each of them says so after it has heard of the newcomer, who holds from the beginning."""
    beat(meeting, 0, "a1")
    beat(meeting, 0, "a2")
    assert beat(meeting, 1, "b1") == CrawlCompany(True, False, 5)
    assert beat(meeting, 2, "a1", holds=False, delay_ms=7) == CrawlCompany(True, True, 5)
    beat(meeting, 3, "a1", delay_ms=7)
    assert beat(meeting, 4, "b1") == CrawlCompany(True, False, 7)
    beat(meeting, 5, "a2")
    assert beat(meeting, 6, "b1") == CrawlCompany(True, True, 7)


def test_node_that_was_alone_holds_nothing_whatever_it_says(meeting: ScriptRunner) -> None:
    """It hears that it is alone, and may stop holding: who comes after that waits for it again."""
    beat(meeting, 0, "a1", holds=True)
    assert not beat(meeting, 1, "b1").all_hold


@pytest.mark.parametrize("how", ["leaves", "is silent"])
def test_node_that_is_gone_is_no_company(meeting: ScriptRunner, how: str) -> None:
    beat(meeting, 0, "a1")
    if how == "leaves":
        beat(meeting, 1, "a1", rest_ms=0)
    assert beat(meeting, 2 if how == "leaves" else LEASE_MS + 1, "b1") == ALONE


def test_node_that_has_left_is_company_while_its_hosts_rest(meeting: ScriptRunner) -> None:
    """Else who stays would ask nobody, and come too soon."""
    beat(meeting, 0, "b1")
    beat(meeting, 0, "a1")
    beat(meeting, 1_000, "b1", rest_ms=700)
    assert beat(meeting, 1_700, "a1") == CrawlCompany(True, True, 0)
    assert beat(meeting, 1_701, "a1") == ALONE


def test_silent_node_is_company_until_its_hosts_have_rested(meeting: ScriptRunner) -> None:
    """It may have fetched until its lease was over. One that held nothing has nothing that would be kept."""
    beat(meeting, 0, "a1")
    beat(meeting, 0, "b1", delay_ms=700)
    assert beat(meeting, LEASE_MS + 700, "a1") == CrawlCompany(True, True, 700)
    assert beat(meeting, LEASE_MS + 701, "a1") == ALONE


def test_late_sign_of_life_changes_nothing(meeting: ScriptRunner) -> None:
    """It was under way while the node said otherwise."""
    beat(meeting, 0, "a1")
    beat(meeting, 0, "b1")
    beat(meeting, 1_000, "a1", holds=False)
    beat(meeting, 500, "a1", holds=True)
    assert not beat(meeting, 1_001, "b1").all_hold
    beat(meeting, 2_000, "a1", rest_ms=0)
    assert beat(meeting, 2_001, "b1") == ALONE


class Host:
    """One host, and crawls that want it."""

    def __init__(self, runner: ScriptRunner, host: str) -> None:
        self.runner, self.host, self.key = runner, host, host_prefix(host)

    def hold(self, at_ms: int, crawl: str, delay_ms: int = DELAY_MS, *, ticket: int = 0, begun: bool = False) -> int:
        call = scripts.hold_host(
            self.host,
            crawl,
            delay_ms,
            MOST_MS,
            T0 + (ticket or at_ms),
            is_under_way=begun,
            now_ms=T0 + at_ms,
        )
        return int(self.runner.run(call))

    def leave(self, at_ms: int, crawl: str, ticket: int, *, ended: int | None = None, rest_ms: int = DELAY_MS) -> bool:
        ended_ms = T0 + (at_ms if ended is None else ended) if ended != 0 else 0
        free_ms = ended_ms + rest_ms if ended_ms else 0
        call = scripts.leave_host(self.host, crawl, T0 + ticket, ended_ms, free_ms, DELAY_MS, now_ms=T0 + at_ms)
        return bool(self.runner.run(call))


@pytest.fixture
def host(runner: ScriptRunner, crawl_name: str) -> Iterator[Host]:
    made = Host(runner, f"{crawl_name}.example")
    yield made
    runner.client.delete(made.key + made.host)


def test_host_is_one_crawls_at_a_time(host: Host) -> None:
    assert host.hold(1, "a") == 0
    assert host.hold(2, "b") == DELAY_MS, "asked again when its delay can be over at the earliest"
    assert host.hold(1_002, "b") == DELAY_MS


def test_after_a_fetch_nobody_has_the_host_before_its_delay_is_over(host: Host) -> None:
    """The longer one of two: what the crawl that fetched asks for, and what the one that comes keeps."""
    host.hold(1, "a")
    host.leave(101, "a", 1, rest_ms=3_000)
    assert [host.hold(200, "a"), host.hold(3_100, "a")] == [2_901, 1]
    assert host.hold(3_101, "a") == 0
    host.leave(3_201, "a", 3_101)
    assert [host.hold(4_201, "b", 5_000), host.hold(8_201, "b", 5_000)] == [4_000, 0]


def test_who_waits_has_the_next_turn(host: Host) -> None:
    """However often the other one asks before it; a turn that nobody takes is over after a second."""
    host.hold(1, "a")
    assert host.hold(50, "b", 4_000) == 4_000
    host.leave(101, "a", 1)
    assert host.hold(1_101, "a") == 3_000 + TURN_MS
    assert host.hold(4_101, "b", 4_000) == 0
    host.hold(4_150, "a")
    host.leave(4_201, "b", 4_101)
    assert host.hold(5_201, "b") == TURN_MS
    assert host.hold(5_201 + TURN_MS, "b") == 0


def test_fetch_that_nobody_ends_is_over_when_it_must_be(host: Host) -> None:
    """The crawl died with it: others wait for its last moment and their delay, its own next node for neither."""
    host.hold(1, "a")
    assert host.hold(2, "a", ticket=2) == 0
    host.hold(3, "b")
    assert host.hold(2 + MOST_MS, "b") == DELAY_MS
    assert host.hold(2 + MOST_MS + DELAY_MS, "b") == 0


def test_late_word_ends_no_later_hold(host: Host) -> None:
    """A repeat that was under way for long finds the host held again, or another's."""
    host.hold(1, "a")
    assert host.leave(101, "a", 1)
    assert host.leave(101, "a", 1), "a repeat"
    host.hold(1_101, "a")
    assert not host.leave(1_200, "a", 1)
    assert host.hold(1_201, "b") > 0
    host.leave(1_300, "a", 1_101)
    assert host.hold(2_300, "b") == 0
    assert not host.leave(2_301, "a", 1_101)
    assert host.hold(2_302, "a") > 0


def test_host_that_was_not_fetched_rests_no_longer(host: Host) -> None:
    host.hold(1, "a")
    host.leave(101, "a", 1, ended=0)
    assert host.hold(102, "b") == 0


def test_fetch_that_was_begun_before_is_held_whatever_rests(host: Host) -> None:
    """The crawl has just heard of others; but what another one has by now stays that one's."""
    host.hold(1, "a")
    host.leave(101, "a", 1)
    assert host.hold(150, "a", begun=True) == 0
    assert host.hold(2_000, "b") > 0
    assert host.hold(2_001, "b", begun=True) == 0
    assert host.leave(2_002, "a", 150), "it is still the one that has it"


def test_record_expires_when_nothing_follows_from_it(host: Host) -> None:
    """Seconds after the delays, so that the hosts of a large crawl do not fill the server."""
    host.hold(1, "a")
    assert host.runner.client.pttl(host.key + host.host) <= MOST_MS + DELAY_MS + TURN_MS
    host.leave(101, "a", 1)
    assert host.runner.client.pttl(host.key + host.host) <= DELAY_MS + 2 * TURN_MS
