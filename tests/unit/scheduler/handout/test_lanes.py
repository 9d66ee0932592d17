"""Hosts that are paced here: one fetch at a time, apart by their delays, whatever was taken ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb.scripts import ANSWERS
from bigcrawl.scheduler.handout.lanes import LOOK_MS, WAIT_MS_MAX, LaneNeed
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.outcomes import OWN_ERROR
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.scheduler.records.held import HeldUrl

DELAY_MS = 100
FETCH_MS = 20
HOST = "a.example"


class Pace(Desk):
    """A desk whose gates let everything pass, when it is due."""

    def __init__(self, tmp_path: Path, **settings: Any) -> None:
        super().__init__(tmp_path, **{"host_delay": DELAY_MS / 1000, "in_process_max": 40, **settings})
        self.lanes = self.handout.lanes
        self.offered: list[HeldUrl] = []
        self.woken = 0
        self.is_alone = True
        self.hosts = 1
        self.connect(self.offered.append)

    def connect(self, offer: Callable[[HeldUrl], None]) -> None:
        self.lanes.open_lanes(
            offer=offer, wake=self._record_wake, hosts=lambda: self.hosts, is_alone=lambda: self.is_alone
        )

    def _record_wake(self) -> None:
        self.woken += 1

    def put(self, seq: int, *, host: str = HOST, ahead: bool = False) -> HeldUrl:
        held = self.taken(seq)
        held.host = host
        (self.lanes.put_ahead if ahead else self.lanes.put)(held)
        return held

    def start(self) -> list[HeldUrl]:
        """Start what the gates were offered and is due."""
        due = [held for held in self.offered if held.due_ms <= self.clock.monotonic_ms()]
        self.offered[:] = [held for held in self.offered if held not in due]
        for held in due:
            self.handout.admit(held)
        started = [popped for _ in due if (popped := self.handout.buffer.pop()) is not None]
        for held in started:
            self.handout.try_send((), held)
        return started

    def answer(self, held: HeldUrl, outcome: str = "status:200") -> None:
        """The answer is there; the spider is not done with it yet."""
        held.outcome, held.download_ms = outcome, FETCH_MS
        self.handout.fetches.record_answered(held)

    def open(self, *, urls: int = 0, first: int = 1) -> HeldUrl:
        """A first fetch has gone well; then come `urls` ahead. Returns the first."""
        assert not list(self.lanes.missing_urls())
        held = self.put(first)
        assert self.start() == [held]
        self.clock.advance(FETCH_MS)
        self.answer(held)
        for seq in range(first + 1, first + 1 + urls):
            self.put(seq, ahead=True)
        return held

    def given_back(self) -> list[int]:
        return [held.seq for held in self.handout.held if held.end is not None and held.end.member == b"="]


def test_a_host_is_free_when_its_fetch_is_over(tmp_path: Path) -> None:
    """Neither the spider nor the page's way to the disk keeps it. The next fetch comes after its delay."""
    pace = Pace(tmp_path)
    first = pace.open(urls=3)
    assert first.stage is Stage.STARTED, "the spider still has it"
    for seq in (2, 3, 4):
        pace.clock.advance(DELAY_MS - 1)
        assert pace.start() == []
        pace.clock.advance(1)
        [held] = pace.start()
        assert held.seq == seq
        pace.clock.advance(FETCH_MS)
        assert pace.start() == [], "one at a time"
        pace.answer(held)


def test_connections_of_a_host_start_apart(tmp_path: Path) -> None:
    """As many at a time as it may have, their starts one delay from each other, whenever fetches end."""
    pace = Pace(tmp_path, host_connections=2)
    pace.open(urls=4)
    pace.clock.advance(DELAY_MS - FETCH_MS - 1)
    assert pace.start() == []
    pace.clock.advance(1)
    [second] = pace.start()
    pace.clock.advance(DELAY_MS - 1)
    assert pace.start() == []
    pace.clock.advance(1)
    [third] = pace.start()
    pace.clock.advance(10 * DELAY_MS)
    assert pace.start() == [], "both connections are used"
    pace.answer(second)
    pace.clock.advance(DELAY_MS + 1)
    assert len(pace.start()) == 1
    assert third.stage is Stage.STARTED


def test_a_lane_asks_for_half_a_second(tmp_path: Path) -> None:
    """No more than its host uses up in that time, nor than its share of what the node may hold; and again at half."""
    pace = Pace(tmp_path)
    pace.open()
    [lacking] = pace.lanes.missing_urls()
    assert lacking == LaneNeed(0, HOST, 500 // (DELAY_MS + FETCH_MS), 1, DELAY_MS + FETCH_MS)
    for seq in range(2, 2 + lacking.urls):
        pace.put(seq, ahead=True)
    assert not list(pace.lanes.missing_urls())


def test_lines_leave_room_for_what_is_fetched(tmp_path: Path) -> None:
    """All lines together have half of what the node may hold, however fast their hosts are."""
    pace = Pace(tmp_path, host_delay=0)
    pace.open()
    [lacking] = pace.lanes.missing_urls()
    assert lacking.urls == 20


def test_a_slow_host_has_no_lane(tmp_path: Path) -> None:
    """Redis paces it. What comes ahead all the same goes back."""
    pace = Pace(tmp_path, host_delay=1)
    pace.open(urls=1)
    assert not list(pace.lanes.missing_urls())
    assert pace.given_back() == [2]


@pytest.mark.parametrize(("connections", "hosts"), [(1, 40), (2, 20), (4, 10), (8, 10)])
def test_many_hosts_have_no_lanes(tmp_path: Path, connections: int, hosts: int) -> None:
    """Those that fill the node without: others are fetched while one waits for Redis."""
    for more in (0, 1):
        pace = Pace(tmp_path / str(more), host_connections=connections)
        pace.hosts = hosts + more
        pace.open(urls=1)
        assert len(list(pace.lanes.missing_urls())) == 1 - more
        assert pace.given_back() == [2] * more


def test_a_line_goes_back_when_hosts_become_many(tmp_path: Path) -> None:
    """A crawl that begins with one site finds others."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.hosts = 41
    pace.clock.advance(LOOK_MS)
    assert not list(pace.lanes.missing_urls())
    assert pace.given_back() == [3, 4]


@pytest.mark.parametrize("outcome", ["status:429", "status:503", "status:500", "error:timeout", "error:connection"])
def test_a_failure_gives_the_line_back(tmp_path: Path, outcome: str) -> None:
    """Nothing more is fetched until Redis gives the host again; what is under way ahead goes back, too."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.clock.advance(DELAY_MS + 1)
    [second] = pace.start()
    pace.answer(second, outcome)
    assert pace.given_back() == [3, 4]
    pace.put(5, ahead=True)
    assert pace.given_back() == [3, 4, 5]
    pace.handout.fetches.end(second)
    pace.put(6, ahead=True)
    assert pace.given_back() == [3, 4, 5, 6]
    pace.clock.advance(60_000)
    assert pace.start() == []


def test_a_url_that_comes_back_brings_the_line_back(tmp_path: Path) -> None:
    """Its gates have sent it away: robots.txt, another crawl, a server's turn."""
    pace = Pace(tmp_path)
    pace.open(urls=2)
    [second] = pace.offered
    pace.handout.give_back(second, 5_000)
    assert pace.given_back() == [2, 3]
    assert not list(pace.lanes.missing_urls())


@pytest.mark.parametrize("has_errback", [False, True])
def test_a_host_that_was_asked_at_the_gates_rests(tmp_path: Path, has_errback: bool) -> None:
    """A HEAD, or a robots.txt that failed: the URL ends, and Redis is told of its host's rest before the others."""
    pace = Pace(tmp_path)
    pace.open(urls=2)
    [second] = pace.offered
    second.go_to(Stage.ROBOTS)
    if has_errback:
        second.has_errback = True
        second.record_answer(0, "error:other")
        pace.handout.fail(second, "error:other")
        assert pace.handout.buffer.pop() is second
        pace.answer(second, "error:other")
        pace.handout.fetches.end(second)
    else:
        second.record_asked(DELAY_MS)
        pace.handout.give_up(second, "unwanted")
    assert pace.given_back() == [3]
    assert [end.seq for end in pace.ended()][:2] == [2, 3]
    assert pace.offered == [second]


def test_a_url_that_ends_at_the_gates_lets_the_next_one_pass(tmp_path: Path) -> None:
    """A thousand of them, too: none calls the next."""
    pace = Pace(tmp_path, host_delay=0, in_process_max=4_000)
    pace.open()
    pace.connect(lambda held: pace.handout.give_up(held, "forbidden"))
    held = [pace.taken(seq) for seq in range(2, 1_002)]
    blocking = pace.taken(5_000)
    pace.lanes._lanes[HOST].using.add(blocking)
    for each in held:
        pace.lanes.put_ahead(each)
    pace.handout.give_up(blocking, "forbidden")
    assert all(each.stage is Stage.ENDED for each in held)


def test_a_line_that_waits_too_long_goes_back(tmp_path: Path) -> None:
    """A fetch that takes so long shows that the host is slow now, or this node."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.clock.advance(DELAY_MS + 1)
    pace.start()
    pace.clock.advance(WAIT_MS_MAX - DELAY_MS - 1)
    list(pace.lanes.missing_urls())
    assert pace.given_back() == []
    pace.clock.advance(1)
    assert not list(pace.lanes.missing_urls())
    assert pace.given_back() == [3, 4]


def test_a_line_goes_back_when_another_crawl_comes(tmp_path: Path) -> None:
    """Hosts are then held for one fetch at a time."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.is_alone = False
    pace.clock.advance(LOOK_MS)
    assert not list(pace.lanes.missing_urls())
    assert pace.given_back() == [3, 4]


def test_no_lane_opens_where_pages_ask_for_more(tmp_path: Path) -> None:
    """A line that is there goes back, and unused hosts are forgotten as before."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.lanes.disable()
    assert pace.given_back() == [3, 4]
    for _ in range(2):
        pace.clock.advance(LOOK_MS)
        assert not list(pace.lanes.missing_urls())
    assert not pace.lanes.are_open


def test_a_closed_node_offers_nothing(tmp_path: Path) -> None:
    """Its gates are closed by then. What ends opens no lane any more."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.lanes.close()
    assert pace.given_back() == [3, 4]
    held = pace.put(9, host="b.example")
    pace.clock.advance(DELAY_MS + 1)
    pace.start()
    pace.answer(held)
    assert not list(pace.lanes.missing_urls())


def test_a_url_set_aside_does_not_block_its_lane(tmp_path: Path) -> None:
    """Nobody tells of it; the next look goes on without it."""
    pace = Pace(tmp_path)
    pace.open(urls=2)
    [second] = pace.offered
    second.go_to(Stage.ENDED)
    list(pace.lanes.missing_urls())
    assert [held.seq for held in pace.offered] == [2, 3]


def test_a_line_that_gets_short_wakes_the_pump(tmp_path: Path) -> None:
    """Not if Redis is known to have no more URLs of the host."""
    pace = Pace(tmp_path, host_delay=0)
    pace.open(urls=20)
    before = pace.woken
    for _ in range(9):
        [held] = pace.start()
        pace.answer(held)
    assert pace.woken == before
    pace.lanes.record_more(HOST, has_more=False)
    for _ in range(3):
        [held] = pace.start()
        pace.answer(held)
    assert pace.woken == before
    pace.lanes.record_more(HOST, has_more=True)
    [held] = pace.start()
    pace.answer(held)
    assert pace.woken == before + 1


def test_hosts_that_are_used_no_more_are_forgotten(tmp_path: Path) -> None:
    """A lane lives as long as the node holds a URL of its host; any other host as long as it is used."""
    pace = Pace(tmp_path)
    first = pace.open(urls=1)
    pace.clock.advance(DELAY_MS + 1)
    [second] = pace.start()
    pace.answer(second)
    for held in (first, second):
        pace.handout.fetches.end(held)
    slow = pace.put(7, host="b.example")
    pace.start()
    pace.answer(slow, "status:500")
    pace.handout.fetches.end(slow)
    assert list(pace.lanes._lanes) == [HOST]
    pace.handout.held.forget([first, second], pace.clock.monotonic_ms(), 0)
    assert not list(pace.lanes.missing_urls())
    assert not pace.lanes._lanes


def test_an_older_answer_does_not_end_a_back_off(tmp_path: Path) -> None:
    """A page that was answered before its host failed, and parsed for long, says nothing new of the host."""
    pace = Pace(tmp_path, host_connections=2)
    first = pace.open(urls=1)
    pace.clock.advance(DELAY_MS + 1)
    [second] = pace.start()
    pace.answer(second, "status:429")
    pace.handout.fetches.end(second)
    pace.handout.fetches.end(first)
    assert first.end is not None
    assert first.end.effect.health != ANSWERS
    assert pace.handout.health.fails(HOST)


def test_gaps_are_measured_to_the_next_fetch(tmp_path: Path) -> None:
    """Also while the spider still has the page before, which ends later."""
    pace = Pace(tmp_path)
    first = pace.open(urls=2)
    pace.clock.advance(DELAY_MS + 1)
    [second] = pace.start()
    pace.handout.fetches.end(first)
    pace.clock.advance(FETCH_MS)
    pace.answer(second)
    pace.clock.advance(DELAY_MS + 9)
    pace.start()
    told = [gap[2:] for gap in pace.gaps]
    assert told == [(DELAY_MS + 1, DELAY_MS), (DELAY_MS + 9, DELAY_MS)], "no gap looks as long as two"


def test_a_refused_url_uses_no_host(tmp_path: Path) -> None:
    """It goes to the engine for its errback alone. The line goes on when that has run."""
    pace = Pace(tmp_path)
    pace.open(urls=2)
    [second] = pace.offered
    second.has_errback = True
    pace.handout.give_up(second, "forbidden")
    assert pace.handout.buffer.pop() is second
    pace.answer(second, "dropped:forbidden")
    pace.handout.fetches.end(second)
    assert [held.seq for held in pace.offered] == [2, 3]
    assert pace.given_back() == []


def test_an_error_of_ours_before_a_fetch_shuts_the_lane(tmp_path: Path) -> None:
    """Its robots.txt may have been asked for, as far as the first redirect. Redis is told of a rest, and paces it."""
    pace = Pace(tmp_path)
    pace.open(urls=2)
    [second] = pace.offered
    pace.handout.fail(second, OWN_ERROR, ValueError("no such handler"))
    assert pace.handout.buffer.pop() is second
    pace.answer(second, OWN_ERROR)
    pace.handout.fetches.end(second)
    assert second.end is not None
    assert second.end.delay_ms >= DELAY_MS
    assert pace.given_back() == [3]
    assert pace.offered == [second]


def test_a_failure_lets_no_lane_open_before_redis_knows_of_it(tmp_path: Path) -> None:
    """Another connection's page may be answered well while the engine still has the one that failed."""
    pace = Pace(tmp_path, host_connections=2)
    pace.open(urls=3)
    pace.clock.advance(2 * DELAY_MS + 1)
    second, third = pace.start()
    pace.answer(second, "status:503")
    pace.answer(third)
    pace.put(5, ahead=True)
    assert pace.given_back() == [4, 5]
    pace.handout.fetches.end(second)
    pace.clock.advance(60_000)
    assert pace.start() == []


def test_a_host_that_must_rest_for_long_loses_its_line(tmp_path: Path) -> None:
    """Its other authority's robots.txt asks for more. Redis waits for its turn, and no URL waits at the gates."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.clock.advance(DELAY_MS + 1)
    [second] = pace.start()
    second.record_crawl_delay(30_000)
    pace.answer(second)
    assert pace.given_back() == [3, 4]
    assert pace.offered == []
    assert not pace.lanes._lanes


def test_a_line_that_has_waited_too_long_is_not_begun(tmp_path: Path) -> None:
    """Nobody may look at it meanwhile: Redis is away, or the node has no room."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.clock.advance(DELAY_MS + 1)
    [second] = pace.start()
    pace.clock.advance(WAIT_MS_MAX + 1)
    pace.answer(second)
    assert pace.given_back() == [3, 4]
    assert pace.offered == []


def test_hosts_whose_urls_were_set_aside_are_forgotten(tmp_path: Path) -> None:
    """Nobody tells of these, or of those of a partition that was lost."""
    pace = Pace(tmp_path)
    assert not list(pace.lanes.missing_urls())
    held = [pace.put(seq, host=f"{seq}.example") for seq in range(1, 6)]
    for each in held[1:]:
        each.go_to(Stage.ENDED)
        pace.handout.held.drop(each)
    pace.clock.advance(LOOK_MS)
    assert not list(pace.lanes.missing_urls())
    assert list(pace.lanes._lanes) == [held[0].host]


def test_redis_learns_when_the_next_connection_may_start(tmp_path: Path) -> None:
    """It does not know of starts in a lane. What comes when the lane is shut tells it, too."""
    pace = Pace(tmp_path, host_connections=2)
    pace.open(urls=1)
    pace.clock.advance(DELAY_MS)
    pace.start()
    pace.clock.advance(10)
    for seq in (3, 4):
        pace.put(seq, ahead=True)
    assert [held.due_ms - pace.clock.monotonic_ms() for held in pace.offered] == [DELAY_MS - 10]
    pace.lanes.shut_lane(HOST)
    pace.put(5, ahead=True)
    assert [(end.seq, end.delay_ms) for end in pace.ended()] == [(seq, 2 * DELAY_MS - 10) for seq in (4, 5)]


def test_a_rest_counts_to_the_microsecond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the end of the fetch. What goes by whole milliseconds is told the next one."""
    pace = Pace(tmp_path)
    monkeypatch.setattr(pace.clock, "monotonic_us", lambda: 1_000 * pace.clock.monotonic_ms() + 700)
    pace.open(urls=1)
    [second] = pace.offered
    assert (second.due_us, second.due_ms) == (1_000 * (FETCH_MS + DELAY_MS) + 700, FETCH_MS + DELAY_MS + 1)


def test_what_redis_gives_starts_a_delay_after_the_last_start_in_a_lane(tmp_path: Path) -> None:
    """Its line was empty when it was shut, so that nothing told Redis; other connections may be in use or not."""
    pace = Pace(tmp_path, host_connections=3)
    first = pace.open(urls=2)
    pace.clock.advance(DELAY_MS)
    [second] = pace.start()
    pace.clock.advance(DELAY_MS)
    [third] = pace.start()
    pace.lanes.close()
    for held in (second, third):
        pace.answer(held)
    for held in (first, second, third):
        pace.handout.fetches.end(held)
    pace.clock.advance(10)
    fourth, fifth = pace.put(4), pace.put(5)
    assert [held.due_ms - pace.clock.monotonic_ms() for held in (fourth, fifth)] == [DELAY_MS - 10, 2 * DELAY_MS - 10]
    pace.clock.advance(60_000)
    assert not list(pace.lanes.missing_urls())
    assert pace.start() == [fourth, fifth]


def test_a_lane_waits_for_what_redis_gave_to_start_later(tmp_path: Path) -> None:
    """A URL is taken up to half a second before it is due."""
    pace = Pace(tmp_path, host_connections=2)
    first, second = pace.taken(1), pace.taken(2)
    second.due_ms += 400
    for held in (first, second):
        held.host = HOST
        pace.lanes.put(held)
    assert not list(pace.lanes.missing_urls())
    [first] = pace.start()
    pace.answer(first)
    third = pace.put(3, ahead=True)
    assert (second.due_ms, third.due_ms) == (400, 400 + DELAY_MS)


def test_what_comes_while_its_host_must_rest_goes_back(tmp_path: Path) -> None:
    """The host was asked by HEAD, and wants a long rest, of which Redis has not heard."""
    pace = Pace(tmp_path, host_connections=2)
    pace.open(urls=1)
    [second] = pace.offered
    second.record_asked(30_000)
    pace.handout.give_back(second, 30_000, "heads")
    pace.put(3)
    assert pace.given_back() == [3]
    assert [end.delay_ms for end in pace.ended()] == [30_000, 30_000]


def test_all_lines_go_back_at_once(tmp_path: Path) -> None:
    """Lanes open again afterwards."""
    pace = Pace(tmp_path)
    pace.open(urls=3)
    pace.lanes.shut_all()
    assert pace.given_back() == [3, 4]
    assert not pace.lanes.are_open


def test_a_report_is_no_older_than_the_answers_before_it(tmp_path: Path) -> None:
    """A robots.txt that fails begins a back-off, which a page that was answered before does not end."""
    pace = Pace(tmp_path, host_connections=2)
    first = pace.open(urls=1)
    [second] = pace.offered
    pace.clock.advance(DELAY_MS)
    second.go_to(Stage.ROBOTS)
    second.record_host_report("dns")
    pace.handout.give_back(second, 0, "robots")
    assert pace.handout.health.fails(HOST)
    pace.handout.fetches.end(first)
    assert first.end is not None
    assert first.end.effect.health != ANSWERS
    assert pace.handout.health.fails(HOST)


def test_hosts_of_a_broad_crawl_are_not_remembered(tmp_path: Path) -> None:
    """No lane may open, and Redis gives a host with one connection to one URL at a time."""
    pace = Pace(tmp_path)
    pace.hosts = 41
    assert not list(pace.lanes.missing_urls())
    held = pace.put(1)
    assert not pace.lanes._lanes
    assert pace.start() == [held]
    pace.clock.advance(FETCH_MS)
    pace.answer(held)
    pace.handout.fetches.end(held)
    assert [end.delay_ms for end in pace.ended()] == [DELAY_MS]


def test_a_late_start_moves_the_next_ones_once(tmp_path: Path) -> None:
    """By as much as it was late, however many were begun meanwhile, and by nothing once that is made up for."""
    pace = Pace(tmp_path, host_connections=4)
    pace.open(urls=3)
    assert [held.due_ms for held in pace.offered] == [DELAY_MS, 2 * DELAY_MS, 3 * DELAY_MS]
    pace.clock.advance(DELAY_MS - FETCH_MS + 30)
    [second] = pace.start()
    pace.answer(second)
    assert pace.put(5, ahead=True).due_ms == 4 * DELAY_MS + 30
    pace.clock.advance(DELAY_MS)
    [third] = pace.start()
    pace.answer(third)
    assert pace.put(6, ahead=True).due_ms == 5 * DELAY_MS + 30


@pytest.mark.parametrize("has_errback", [False, True])
def test_a_refused_url_costs_no_gap_between_connections(tmp_path: Path, has_errback: bool) -> None:
    """Nothing is asked of its host, so the next URL has its turn, in a lane and without."""
    pace = Pace(tmp_path, host_connections=4)

    def offer(held: HeldUrl) -> None:
        if held.seq % 2:
            pace.offered.append(held)
        else:
            held.has_errback = has_errback
            pace.handout.give_up(held, "forbidden")

    pace.connect(offer)
    pace.open(urls=2)
    assert [(held.seq, held.due_ms) for held in pace.offered] == [(3, DELAY_MS)]
    pace.lanes.shut_lane(HOST)
    pace.put(4)
    assert pace.put(5).due_ms == 2 * DELAY_MS


def test_a_url_that_no_middleware_lets_pass_costs_no_gap(tmp_path: Path) -> None:
    """It is known late that nothing is asked of its host. The last one that was begun makes way for the next."""
    pace = Pace(tmp_path, host_connections=2)
    pace.open(urls=1)
    [second] = pace.offered
    pace.handout.give_up(second, "forbidden")
    assert pace.put(3, ahead=True).due_ms == DELAY_MS


@pytest.mark.parametrize("is_open", [False, True])
def test_a_turn_that_redis_gave_is_known_in_milliseconds(tmp_path: Path, is_open: bool) -> None:
    """So no turns of the event loop are spent on its last half of one."""
    pace = Pace(tmp_path, host_connections=2)
    if is_open:
        pace.open()
    held = pace.taken(7)
    held.host, held.due_ms = HOST, pace.clock.monotonic_ms() + 400
    pace.lanes.put(held)
    assert pace.offered == [held]
    assert held.due_us == 0


def test_a_failure_gives_back_what_waits_for_its_turn_at_the_gates(tmp_path: Path) -> None:
    """On another connection. It comes again half a second later at the earliest, when Redis knows of the failure."""
    pace = Pace(tmp_path, host_connections=3)
    pace.open(urls=3)
    pace.clock.advance(DELAY_MS - FETCH_MS)
    [second] = pace.start()
    assert [held.seq for held in pace.offered] == [3, 4]
    pace.answer(second, "status:503")
    assert sorted(pace.given_back()) == [3, 4]
    assert min(end.delay_ms for end in pace.ended()) >= 500


def test_few_urls_wait_for_their_turns_at_the_gates(tmp_path: Path) -> None:
    """However many connections are free: rules may change, and a line that waits too long goes back."""
    pace = Pace(tmp_path, host_connections=16)
    pace.open(urls=15)
    assert [held.due_ms for held in pace.offered] == [100, 200, 300, 400, 500]
    pace.clock.advance(DELAY_MS - FETCH_MS)
    pace.start()
    assert pace.offered[-1].due_ms == 600
    assert pace.given_back() == []


def test_a_rest_counts_from_when_the_answer_had_come(tmp_path: Path) -> None:
    """The event loop may hear of it later."""
    pace = Pace(tmp_path)
    pace.open(urls=2)
    pace.clock.advance(DELAY_MS)
    [second] = pace.start()
    pace.clock.advance(FETCH_MS)
    second.outcome = "status:200"
    pace.handout.fetches.record_answered(second, 1_000 * pace.clock.monotonic_ms() - 1_234)
    [third] = pace.offered
    assert third.due_us == 1_000 * (pace.clock.monotonic_ms() + DELAY_MS) - 1_234
