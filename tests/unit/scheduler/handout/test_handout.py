"""From taken to ended in memory: what the engine gets, and with which rest each host is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.scripts import ANSWERS, NO_EFFECT, EndedUrl, HostEffect, effect_of_answer, effect_of_move
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.member import order_of, unpack_member
from bigcrawl.scheduler.records.outcomes import ABORTED
from bigcrawl.scheduler.records.queued_url import ASKED
from tests.unit.scheduler.handout.desk import Desk
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import queued

if TYPE_CHECKING:
    from pathlib import Path


BACKOFF = (10_000, 43_200_000, 250, 8)  # of a failure, by the desk's settings and dice


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_urls_are_handed_out_in_the_order_they_were_admitted(desk: Desk) -> None:
    """First admitted, first out; each once; the engine is woken for each."""
    woken = 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    desk.handout.wake_engine = wake
    urls = [desk.taken(seq) for seq in (1, 2, 3)]
    for held in urls:
        desk.handout.admit(held)
        desk.handout.admit(held)
    assert [desk.handout.buffer.pop() for _ in range(4)] == [*urls, None]
    assert woken == 3


def test_url_returned_meanwhile_is_not_handed_out(desk: Desk) -> None:
    """A URL that went back to its queue leaves the buffer."""
    held = desk.taken()
    desk.handout.admit(held)
    desk.handout.give_back(held, 0)
    assert desk.handout.buffer.pop() is None


def test_forbidden_url_does_not_shorten_host_delay(desk: Desk) -> None:
    """A URL that is not fetched asks for no rest of its own; the script keeps the later of two times."""
    desk.handout.give_up(desk.taken(), "forbidden")
    assert desk.ended() == [EndedUrl(1, 0, b"", "dropped:forbidden")]


def test_a_url_that_was_asked_by_head_returns_with_its_mark(desk: Desk) -> None:
    """To its old place, so that it is its host's next; the host rests."""
    held = desk.taken()
    held.go_to(Stage.ROBOTS)
    held.record_asked(1_000)
    desk.handout.give_back(held, 1_000, "heads")
    [end] = desk.ended()
    assert end == EndedUrl(1, 1_000, end.member, "heads")
    assert unpack_member(end.member) == held.fields
    assert held.fields.flags == ASKED


@pytest.mark.parametrize("has_errback", [False, True])
def test_a_url_that_its_head_drops_leaves_its_host_a_rest(desk: Desk, *, has_errback: bool) -> None:
    """The host was asked, whether the spider has to hear of it or not."""
    held = desk.taken()
    held.has_errback = has_errback
    held.go_to(Stage.ROBOTS)
    held.record_asked(3_000)
    desk.handout.give_up(held, "media-type")
    if has_errback:
        assert desk.handout.buffer.pop() is held
        held.outcome = "dropped:media-type"
        desk.handout.fetches.end(held)
    assert desk.ended() == [EndedUrl(1, 3_000, b"", "dropped:media-type")]


def test_errback_of_a_url_that_was_fetched_elsewhere_is_not_called(desk: Desk) -> None:
    """It is a duplicate like any other, which ends silently."""
    held = desk.taken()
    held.has_errback = True
    desk.handout.give_up(held, "elsewhere")
    assert held.end is not None
    assert held.end.counter == "dropped:elsewhere"


def test_url_that_has_left_does_not_come_back_by_a_failure(desk: Desk) -> None:
    """Another node may own it by the time its robots.txt has failed."""
    held = desk.taken()
    held.go_to(Stage.ROBOTS)
    desk.handout.return_all()
    assert held.stage is Stage.ENDED
    desk.handout.fail(held, "error:timeout")
    assert held.stage is Stage.ENDED
    assert desk.handout.buffer.pop() is None


def test_end_waits_for_links_offered_before_it(desk: Desk) -> None:
    """The barrier of an ended URL is what the outbox had been offered by then."""
    held = desk.started()
    desk.outbox.offer(queued("http://b.example/")[0], 0)
    held.outcome = "status:200"
    desk.handout.fetches.end(held)
    assert desk.ended(flushed=0) == []
    assert [end.counter for end in desk.ended(flushed=1)] == ["status:200"]


def test_aborted_fetch_returns_to_its_place_with_the_delay(desk: Desk) -> None:
    """A fetch that was given up is no failure of the URL; its host was asked and rests."""
    held = desk.started()
    held.outcome = ABORTED
    desk.handout.fetches.end(held)
    assert desk.ended() == [EndedUrl(1, 1_000, b"=")]


def test_retry_replaces_the_member_and_goes_behind_the_others(desk: Desk) -> None:
    """The host that answered rests its delay, no longer."""
    held = desk.started()
    held.outcome, held.next_try, held.next_order = "status:500", b"1:again", 77
    desk.handout.fetches.end(held)
    assert desk.ended() == [EndedUrl(1, 1_000, b"1:again", "retried:status:500", 0, effect_of_answer(77))]


@pytest.mark.parametrize("outcome", ["status:429", "status:503", "error:timeout", "error:refused", "error:dns"])
def test_failure_of_the_host_is_told_to_be_counted(desk: Desk, outcome: str) -> None:
    """With the back-off's bounds, the dice and the next try's place; an answer says that the host is well."""
    failed = desk.started(1)
    failed.outcome, failed.next_try, failed.next_order, failed.download_ms = outcome, b"1:again", 77, 180_000
    desk.handout.fetches.end(failed)
    assert desk.handout.health.is_failing(failed.host, 2)
    assert not desk.handout.health.is_failing(failed.host, 1), "its own failures are its own"
    last = desk.started(2)
    last.outcome = outcome
    desk.handout.fetches.end(last)
    fine = desk.started(3)
    fine.outcome = "status:404"
    desk.handout.fetches.end(fine)
    assert not desk.handout.health.is_failing(fine.host, 9)
    rest_ms = 2_000 if outcome == "status:503" else 1_000
    assert [(end.delay_ms, end.effect) for end in desk.ended()] == [
        (rest_ms, HostEffect(outcome, 77, *BACKOFF)),
        (rest_ms, HostEffect(outcome, "", *BACKOFF)),
        (1_000, effect_of_answer()),
    ]


def test_host_rests_as_long_as_it_asks_for(desk: Desk) -> None:
    """Retry-After is kept whole; the back-off begins with it, and grows to the same bound."""
    held = desk.started()
    held.outcome, held.retry_after_ms = "status:429", 5_000_000
    desk.handout.fetches.end(held)
    assert [(end.delay_ms, end.effect) for end in desk.ended()] == [
        (5_000_000, HostEffect("status:429", "", 5_000_000, *BACKOFF[1:])),
    ]


@pytest.mark.parametrize(
    "outcome", ["error:dataloss", "error:too-large", "error:other", "dropped:ignored", ABORTED, ""]
)
def test_what_is_not_the_hosts_failure_is_not_counted(desk: Desk, outcome: str) -> None:
    """An answer that broke off is one; what never was a fetch, or broke here, says nothing."""
    held = desk.started()
    held.outcome = outcome
    desk.handout.fetches.end(held)
    is_answer = outcome in ("error:dataloss", "error:too-large")
    assert [end.effect for end in desk.ended()] == [effect_of_answer() if is_answer else NO_EFFECT]
    assert not desk.handout.health.is_failing(held.host, 9)


def test_what_a_door_or_robots_said_goes_with_the_return(desk: Desk) -> None:
    """A URL that goes back unfetched may still tell of its host; of a failure it waits behind the host's others."""
    for seq, said in enumerate(["dns", ANSWERS, ""], 1):
        held = desk.taken(seq)
        held.record_host_report(said)
        desk.handout.give_back(held, 500)
    failed = HostEffect("dns", order_of(-1, 1), *BACKOFF)
    assert [end.effect for end in desk.ended()] == [failed, effect_of_answer(), NO_EFFECT]


def test_url_the_engine_dropped_is_counted(desk: Desk) -> None:
    """A request that ended without a response or an error was ignored by somebody: counted as such."""
    desk.handout.fetches.end(desk.started())
    assert [end.counter for end in desk.ended()] == ["dropped:ignored"]


def test_url_of_a_lost_partition_is_not_handed_out(desk: Desk) -> None:
    """Another node owns its host now: what waits here for the engine, or for its time, goes nowhere."""
    buffered, waiting, mine = desk.taken(1), desk.taken(2), held_url(3, partition=1)
    desk.handout.held.add(mine)
    desk.handout.admit(buffered)
    desk.handout.held.drop_partition(0)
    desk.handout.admit(waiting)
    desk.handout.admit(mine)
    assert desk.handout.buffer.pop() is mine
    assert desk.handout.buffer.pop() is None


def test_nothing_is_handed_out_after_the_lease_and_nothing_is_lost(desk: Desk) -> None:
    """Past the lease pop gives nothing; renewed, it gives what had waited."""
    held = desk.taken()
    desk.handout.admit(held)
    desk.handout.lease.ends_ms = 0
    assert desk.handout.buffer.pop() is None
    desk.handout.lease.ends_ms = 1 << 60
    assert desk.handout.buffer.pop() is held


def test_stop_returns_what_was_not_started_and_leaves_what_runs(desk: Desk) -> None:
    """Waiting and buffered URLs go back at once; started ones, and robots.txt under way, go on."""
    started, waiting, buffered, asked = desk.started(1), desk.taken(2), desk.taken(3), desk.taken(4)
    desk.handout.admit(buffered)
    asked.stage = Stage.ROBOTS
    desk.handout.return_unstarted()
    assert [end.seq for end in desk.ended()] == [2, 3]
    assert (started.stage, waiting.stage, asked.stage) == (Stage.STARTED, Stage.ENDED, Stage.ROBOTS)
    assert desk.handout.buffer.waiting == 0


def test_last_words_return_everything_and_rest_the_hosts_that_were_asked(desk: Desk) -> None:
    """At the end nothing stays held; a host that was asked for something is left alone for its delay."""
    started, waiting = desk.started(1), desk.taken(2)
    desk.handout.return_all()
    assert {end.seq: end.delay_ms for end in desk.ended()} == {1: 1_000, 2: 0}
    assert started.stage is waiting.stage is Stage.ENDED


def test_url_of_a_lost_partition_ends_without_a_word(desk: Desk) -> None:
    """The engine may be done with a URL that is another node's by now."""
    held = desk.started()
    desk.handout.held.drop_partition(0)
    desk.handout.fetches.end(held)
    assert desk.ended() == []


def test_end_of_a_fetch_is_noted_when_it_is_seen(desk: Desk) -> None:
    """The host's delay counts from there; what goes back unfetched was never at its host."""
    fetched, unfetched = desk.started(1), desk.taken(2)
    desk.clock.advance(7_000)
    desk.handout.fetches.end(fetched)
    desk.clock.advance(1_000)
    desk.handout.give_back(unfetched, 500)
    desk.handout.fetches.end(fetched)  # the second word changes no end
    assert [end.seq for end in desk.ended()] == [1, 2]
    assert unfetched.ended_ms == 0
    assert fetched.ended_ms >= 7_000


def test_failing_hosts_are_put_off_while_others_wait(desk: Desk) -> None:
    """The URL goes back, its host's failures as they were; hosts that answer are never put off."""
    failed, other = desk.started(1), desk.taken(2)
    failed.outcome = "error:timeout"
    desk.handout.fetches.end(failed)
    other.host = "answers.example"
    again = desk.taken(3)
    for _ in range(1_000):
        assert not desk.handout.ends.put_off_if_late(other, 30_000)
    while not desk.handout.ends.put_off_if_late(again, 30_000):
        pass
    assert again.end == EndedUrl(3, 75_000, b"=", "put_off", 0)
    assert not desk.handout.ends.put_off_if_late(other, 30_000)
    assert other.stage is Stage.WAITING


def put_off(desk: Desk, seq: int, host: str = "a.example", attempts: int = 0) -> EndedUrl | None:
    """How a URL ends that is put off sooner or later, by a node that is behind; None: it is not."""
    held = desk.taken(seq)
    held.host, held.fields = host, held.fields._replace(attempts=attempts)
    for _ in range(500):
        if desk.handout.ends.put_off_if_late(held, 30_000):
            return held.end
    return None


def page(desk: Desk, seq: int, outcome: str, key: int) -> None:
    """A page of the one host that was fetched."""
    held = desk.started(seq)
    held.outcome, held.fields = outcome, held.fields._replace(key=key)
    desk.handout.fetches.end(held)


def test_urls_that_are_tried_again_are_put_off_behind_their_hosts_others(desk: Desk) -> None:
    """They share what failing hosts have; their host only rests its delay. Who takes it later knows its place."""
    assert put_off(desk, 1, "busy.example") is None
    end = put_off(desk, 3, attempts=1)
    assert end is not None
    member = unpack_member(end.member)
    assert (member.priority, member.seq, member.attempts) == (-1, 3, 1)
    assert end._replace(member=b"") == EndedUrl(3, 1_250, b"", "put_off", 0, effect_of_move(order_of(-1, 3)))


def test_hosts_whose_pages_fail_one_after_the_other_are_put_off(desk: Desk) -> None:
    """One bad page is nothing, however often it is tried; a good one ends it."""
    assert put_off(desk, 1, "busy.example") is None
    page(desk, 2, "error:dataloss", key=7)
    page(desk, 3, "error:dataloss", key=7)
    assert put_off(desk, 4) is None
    page(desk, 5, "error:dataloss", key=8)
    end = put_off(desk, 6)
    assert end is not None
    assert (end.member, end.delay_ms, end.effect) == (b"=", 75_000, NO_EFFECT)
    page(desk, 7, "status:200", key=9)
    assert put_off(desk, 8) is None


def test_failing_hosts_are_not_put_off_by_a_node_that_is_not_behind(desk: Desk) -> None:
    """Nobody waits for them."""
    failed, again = desk.started(1), desk.taken(2)
    failed.outcome = "error:timeout"
    desk.handout.fetches.end(failed)
    assert not any(desk.handout.ends.put_off_if_late(again, 500) for _ in range(1_000))
