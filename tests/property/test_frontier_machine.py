"""The scripts against a model: several nodes, lost replies, deaths and takeovers, on the test's own clock.

The model knows each URL's place (waiting, taken, ended) and, per host, when the web may see the next fetch:
the end of the last one plus its delay, or, where a node died in mid-fetch, the end of its deadline plus the
delay. Every take is checked against it; after every rule all keys are read.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bigcrawl.redisdb import script_texts, scripts
from bigcrawl.redisdb.scripts import (
    ANSWERS,
    NO_EFFECT,
    EndedUrl,
    GrantedClaim,
    HostEffect,
    effect_of_answer,
    effect_of_failure,
)
from tests.support.redis_servers.script_world import (
    ABORT_MS,
    DEADLINE_MS,
    DELAY_MS,
    HORIZON_MS,
    LEASE_MS,
    ScriptRunner,
    ScriptWorld,
    seq_of,
)
from tests.support.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.redis_servers.redis_server import PrivateRedis
    from tests.support.redis_servers.script_world import Url

HOSTS = ("a.example", "b.example", "c.example")
NODES = ("n1", "n2", "n3")
AHEAD_MS = 2_000
BACKOFF_MS, BACKOFF_MS_MAX = 3_000, 20_000
FAILED = effect_of_failure("error:timeout", (BACKOFF_MS, BACKOFF_MS_MAX, 0, 0))
SETTINGS = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
_numbers = itertools.count(1)


@dataclass
class Fetch:
    """A URL that the owner took and knows of."""

    host: str
    order: int
    member: bytes
    due_ms: int
    is_ahead: bool = False
    next_order: int | None = None


@dataclass
class Model:
    """What must be true of the crawl, whatever the scripts do."""

    orders: dict[int, tuple[str, int]] = field(default_factory=dict)
    members: dict[int, bytes] = field(default_factory=dict)
    held: dict[int, Fetch] = field(default_factory=dict)
    unheard: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    counted_again: int = 0
    next_ms: Counter[str] = field(default_factory=Counter)
    lent_until_ms: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    failed_ms: dict[str, int] = field(default_factory=dict)

    @property
    def waiting(self) -> set[int]:
        return self.orders.keys() - self.held.keys() - self.unheard - self.ended

    def rest(self, host: str, until_ms: int) -> None:
        self.next_ms[host] = max(self.next_ms[host], until_ms)

    def first_waiting(self, host: str) -> int:
        """The URL that the host must give next."""
        return min(
            (order, seq) for seq, (where, order) in self.orders.items() if where == host and seq in self.waiting
        )[1]


class FrontierMachine(RuleBasedStateMachine):
    """Drives one partition and compares it with the model."""

    def __init__(self, runner: ScriptRunner, connections: int) -> None:
        super().__init__()
        self.runner = runner
        self.connections = connections
        self.world = ScriptWorld(runner, f"machine{next(_numbers)}", connections=connections)
        self.model = Model()
        self.batches: list[list[Url]] = []
        self.lease_ends_ms = 0
        self.loan: tuple[str, str, int] | None = None

    @initialize()
    def begin(self) -> None:
        assert isinstance(self.world.claim("n1"), GrantedClaim)
        self.lease_ends_ms = self.world.now_ms + LEASE_MS

    # --- time

    @rule(ms=st.sampled_from([1, 200, HORIZON_MS, DELAY_MS, 3 * DELAY_MS, LEASE_MS, DEADLINE_MS + DELAY_MS]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)

    # --- the life of a URL

    @rule(rows=st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from([0, 0, -(1 << 33), 1 << 33])), max_size=6))
    def admit(self, rows: list[tuple[str, int]]) -> None:
        urls = self.world.urls(*rows)
        self.batches.append(urls)
        assert self.world.admit_as(len(self.batches), urls)
        for host, order, member in urls:
            self.model.orders[seq_of(member)] = (host, order)
            self.model.members[seq_of(member)] = member

    @precondition(lambda self: self.batches)
    @rule(back=st.integers(0, 5))
    def admit_again(self, back: int) -> None:
        number = max(1, len(self.batches) - back)
        assert not self.world.admit_as(number, self.batches[number - 1])

    @rule(urls_max=st.integers(1, 4), horizon_ms=st.sampled_from([0, HORIZON_MS]), heard=st.integers(0, 3))
    def take(self, urls_max: int, horizon_ms: int, heard: int) -> None:
        """Take; in one case of four the reply is lost."""
        taken = self.world.take(urls_max, horizon_ms).urls
        for url in taken:
            seq = seq_of(url.member)
            assert seq == self.model.first_waiting(url.host), "the head of the host's queue"
            assert url.member == self.model.members[seq]
            assert url.due_ms <= self.world.now_ms + horizon_ms
            start_ms = max(self.world.now_ms, url.due_ms)
            assert start_ms >= self.model.next_ms[url.host], f"{url.host} before its delay was over"
            assert start_ms >= self.model.lent_until_ms[url.host], f"{url.host} while it is lent"
            busy = [held for held in self.model.held.values() if held.host == url.host]
            assert len(busy) < self.connections, f"{url.host} beyond its connections"
            if heard:
                self.model.held[seq] = Fetch(url.host, self.model.orders[seq][1], url.member, start_ms)
            else:
                self.model.unheard.add(seq)
        if not heard:
            self.reconcile()

    @rule(
        host=st.sampled_from(HOSTS),
        most=st.integers(1, 4),
        horizon_ms=st.sampled_from([0, HORIZON_MS]),
        heard=st.integers(0, 3),
        data=st.data(),
    )
    def take_ahead(self, host: str, most: int, horizon_ms: int, heard: int, data: Any) -> None:
        """Take URLs of a host that the owner paces, however many it has, and end others in the same call."""
        ends = self._ends(data) if self.model.held and data.draw(st.booleans()) else []
        taken = self.world.exchange(0, horizon_ms, *ends, ahead=[(host, most)])
        self._record_ended(ends)
        waiting = [seq for seq in self.model.waiting if self.model.orders[seq][0] == host]
        free_ms = max(self.model.next_ms[host], self.model.lent_until_ms[host])
        assert taken.ahead == len(taken.urls) <= min(most, len(waiting))
        assert not taken.urls or free_ms <= self.world.now_ms + horizon_ms, f"{host} must rest"
        for url in taken.urls:
            seq = seq_of(url.member)
            assert seq == self.model.first_waiting(url.host), "the head of the host's queue"
            assert url.member == self.model.members[seq]
            start_ms = max(self.world.now_ms, url.due_ms)
            assert start_ms >= free_ms, f"{url.host} before its delay was over"
            if heard:
                order = self.model.orders[seq][1]
                self.model.held[seq] = Fetch(url.host, order, url.member, start_ms, is_ahead=True)
            else:
                self.model.unheard.add(seq)
        if not heard:
            self.reconcile()

    def _ends(self, data: Any) -> list[EndedUrl]:
        seqs = data.draw(st.lists(st.sampled_from(sorted(self.model.held)), unique=True, max_size=4))
        ends = []
        for seq in seqs:
            started = self.model.held[seq].due_ms <= self.world.now_ms
            kinds = [b"", b"=", b"%d:again%d" % (seq, next(_numbers))] if started else [b"="]
            # Only a fetch that never began may ask for no delay.
            member = data.draw(st.sampled_from(kinds))
            never_began = not started or (member == b"=" and self.model.held[seq].is_ahead)
            delays_ms = [0, DELAY_MS] if never_began else [DELAY_MS, 5 * DELAY_MS]
            news = data.draw(st.sampled_from([NO_EFFECT, effect_of_answer(), FAILED])) if started else NO_EFFECT
            if member not in (b"", b"=") and (news == FAILED or (news == NO_EFFECT and data.draw(st.booleans()))):
                self.model.held[seq].next_order = self.model.held[seq].order + (1 << 33)
                news = news._replace(order=self.model.held[seq].order + (1 << 33))
            ends.append(EndedUrl(seq, data.draw(st.sampled_from(delays_ms)), member, "", 0, news))
        return ends

    def _record_ended(self, ends: Sequence[EndedUrl]) -> None:
        for end in ends:
            fetch = self.model.held.pop(end.seq)
            self.model.rest(fetch.host, self.world.now_ms + end.delay_ms)
            self._record_health(fetch, end.effect)
            if fetch.next_order is not None:
                self.model.orders[end.seq] = (fetch.host, fetch.next_order)
            if not end.member:
                self.model.ended.add(end.seq)
            elif end.member != b"=":
                self.model.members[end.seq] = end.member

    def _record_health(self, fetch: Fetch, news: HostEffect) -> None:
        host = fetch.host
        if news.health == ANSWERS:
            self.model.failures.pop(host, None)
            self.model.failed_ms.pop(host, None)
        elif news.health and fetch.due_ms >= self.model.failed_ms.get(host, 0):
            self.model.failures[host] += 1
            self.model.failed_ms[host] = self.world.now_ms
            backoff_ms = min(BACKOFF_MS << 2 * (self.model.failures[host] - 1), BACKOFF_MS_MAX)
            self.model.rest(host, self.world.now_ms + backoff_ms)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), repeated=st.booleans())
    def end(self, data: Any, repeated: bool) -> None:
        ends = self._ends(data)
        assert self.world.end(*ends) == len(ends)
        if repeated:
            assert self.world.end(*ends) == 0
        self._record_ended(ends)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def end_unheard(self, data: Any) -> None:
        """The reply to an end is lost: both sides are compared, and the end is said, and counted, again."""
        ends = self._ends(data)
        self.world.end(*ends)
        for end in ends:
            self._record_health(self.model.held[end.seq], end.effect)
        self.reconcile()
        self.model.counted_again += sum(not end.member for end in ends)
        assert self.world.end(*ends) == len(ends)
        self._record_ended(ends)

    @rule(host=st.sampled_from(HOSTS), repeated=st.booleans())
    def forbidden_urls_are_dropped(self, host: str, repeated: bool) -> None:
        """Every other one of a host's URLs, told of as waiting or not: what waits ends, what is taken stays."""
        seqs = [seq for seq, (where, _) in self.model.orders.items() if where == host and seq % 2]
        waiting = self.model.waiting.intersection(seqs)
        urls = [(self.model.members[seq], b"x" * 12) for seq in seqs]
        call = scripts.drop_urls(self.world.keys, self.world.who, host, "dropped:forbidden", urls)
        assert self.runner.run(call) == len(waiting)
        if repeated:
            assert self.runner.run(call) == 0
        self.model.ended |= waiting

    # --- owners

    @rule()
    def reconcile(self) -> None:
        held: Any = [(seq, (fetch.host, fetch.order, fetch.member)) for seq, fetch in self.model.held.items()]
        self.world.reconcile(held, places=self._places())
        self.model.unheard.clear()
        self.world.check()

    def _places(self) -> list[tuple[str, int]]:
        """Where the next tries of ended URLs stand, should their ends have been carried out."""
        return [(fetch.host, fetch.next_order) for fetch in self.model.held.values() if fetch.next_order is not None]

    @rule()
    def redis_restarts(self) -> None:
        """The owner claims its own partition again and says what it holds."""
        assert isinstance(self.world.claim(self.world.who.node), GrantedClaim)
        self.lease_ends_ms = self.world.now_ms + LEASE_MS
        assert not self.world.check().taken
        held: Any = [(seq, (fetch.host, fetch.order, fetch.member)) for seq, fetch in self.model.held.items()]
        self.world.reconcile(held, places=self._places(), delay_ms=DELAY_MS)
        self.model.unheard.clear()
        assert all(score >= self.world.now_ms + DELAY_MS for score in self.world.check().ready.values())

    @rule()
    def renew(self) -> None:
        call = scripts.look_partition(self.world.keys, self.world.who, LEASE_MS, self.world.now_ms)
        assert self.runner.run(call).owned
        self.lease_ends_ms = self.world.now_ms + LEASE_MS

    @rule(node=st.sampled_from(NODES))
    def another_node_asks(self, node: str) -> None:
        """It wins only when the lease has run out; the old owner gives its fetches up soon after that."""
        if node == self.world.who.node:
            return
        old = self.world.who
        won = isinstance(self.world.claim(node), GrantedClaim)
        assert won == (self.world.now_ms >= self.lease_ends_ms)
        if won:
            self._owner_is_gone(DEADLINE_MS)
        else:
            assert self.world.who == old

    @rule(node=st.sampled_from(NODES))
    def owner_is_killed(self, node: str) -> None:
        """Another node knows for certain that the owner is dead."""
        dead = self.world.who.node
        if node != dead:
            assert isinstance(self.world.claim(node, dead_token=f"token-{dead}"), GrantedClaim)
            self._owner_is_gone(0)

    def _owner_is_gone(self, deadline_ms: int) -> None:
        given_up_ms, self.lease_ends_ms = self.lease_ends_ms + ABORT_MS, self.world.now_ms + LEASE_MS
        for fetch in self.model.held.values():
            began = fetch.due_ms <= self.world.now_ms
            end_ms = self.world.now_ms if began else fetch.due_ms
            if deadline_ms:
                end_ms = min(fetch.due_ms + deadline_ms, given_up_ms)
            self.model.rest(fetch.host, end_ms + (DELAY_MS if began or deadline_ms else 0))
        self.model.held.clear()
        assert not self.world.check().taken

    # --- other nodes' hands on the hosts

    @precondition(lambda self: self.loan is None)
    @rule(host=st.sampled_from(HOSTS))
    def borrow(self, host: str) -> None:
        ticket = f"ticket{next(_numbers)}"
        call = scripts.borrow_host(self.world.keys, host, ticket, AHEAD_MS, DEADLINE_MS, self.world.now_ms)
        lent, wait_ms = self.runner.run(call)
        if lent:
            assert self.runner.run(call) == (lent, wait_ms), "a repeat gets the same answer"
            start_ms = self.world.now_ms + wait_ms
            assert start_ms >= max(self.model.next_ms[host], self.model.lent_until_ms[host])
            assert not any(fetch.host == host for fetch in self.model.held.values())
            self.loan = (host, ticket, start_ms)
            self.model.lent_until_ms[host] = start_ms + DEADLINE_MS

    @precondition(lambda self: self.loan is not None)
    @rule(dies=st.booleans())
    def borrower_ends(self, dies: bool) -> None:
        assert self.loan is not None
        (host, ticket, start_ms), self.loan = self.loan, None
        if dies:
            return
        in_time = self.world.now_ms < self.model.lent_until_ms[host]
        self.runner.run(scripts.return_host(self.world.keys, host, ticket, DELAY_MS, self.world.now_ms))
        if in_time:
            self.model.lent_until_ms[host] = 0
            self.model.rest(host, max(start_ms, self.world.now_ms + DELAY_MS))

    @rule(host=st.sampled_from(HOSTS), records_max=st.integers(1, 3))
    def robots_rules_come(self, host: str, records_max: int) -> None:
        call = scripts.put_robots(self.world.keys, host, "robots:x", b"rules", 5_000, records_max, self.world.now_ms)
        self.runner.run(call)

    # --- what always holds

    @invariant()
    def every_url_is_where_it_should_be(self) -> None:
        """Admitted = waiting + taken + ended, each in one place, and no waiting host is forgotten."""
        seen = self.world.check()
        assert set(seen.queued_seqs) == self.model.waiting
        assert seen.taken.keys() == self.model.held.keys() | self.model.unheard
        assert self.world.count("ended") == len(self.model.ended) + self.model.counted_again
        for host, queue in seen.queues.items():
            wanted = {self.model.members[seq]: self.model.orders[seq][1] for seq in map(seq_of, queue)}
            assert queue == wanted, host

    def teardown(self) -> None:
        """Whatever happened, everything can still be fetched and ended."""
        try:
            self._drain()
        finally:
            self.runner.delete(self.world.keys.owner.removesuffix("owner"))

    def _drain(self) -> None:
        if not self.world.who.node:
            return
        self.world.acknowledge(*self.model.held)
        for _ in range(len(self.model.orders) + 2):
            self.world.advance(2 * DEADLINE_MS)
            self.world.acknowledge(*self.world.take_seqs())
        seen = self.world.check()
        assert not seen.queues
        assert not seen.taken
        assert self.world.count("ended") == len(self.model.orders) + self.model.counted_again


@pytest.mark.parametrize("connections", [1, 2])
def test_scripts_agree_with_the_model(redis_server: PrivateRedis, connections: int) -> None:
    """After any sequence of calls, deaths, takeovers and lost replies the scripts and the model agree."""
    runner = ScriptRunner(redis_server.client, script_texts.script_names())
    machine: Any = partial(FrontierMachine, runner, connections)
    run_state_machine_as_test(machine, settings=SETTINGS)
