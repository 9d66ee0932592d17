"""Block leases against leases of single partitions: what one grants, refuses, prolongs and finds, so does the other.

Each call goes to two crawls on one server: one with block leases, and one whose scripts see partitions alone, as on a
cluster. Nodes stand still for an hour, replies are lost, calls arrive again or a minute late, and Redis forgets its
last writes. After every rule each partition's lease must end at the same moment in both.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

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
from bigcrawl.redisdb.keys import LEASES_TOGETHER, PartitionKeys
from bigcrawl.redisdb.scripts import GrantedClaim, Identity
from tests.support.redis_servers.script_world import ABORT_MS, DEADLINE_MS, DELAY_MS, LEASE_MS, T0, ScriptRunner
from tests.support.sizes import examples
from tests.unit.redisdb.test_lua_contract import SCRIPT_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.redisdb.scripts import Call
    from tests.support.redis_servers.redis_server import PrivateRedis

NODES = ("a", "b", "c")
PARTITIONS = (0, 1, 10, LEASES_TOGETHER - 1, LEASES_TOGETHER, LEASES_TOGETHER + 1)  # of two blocks
SETTINGS = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)
_numbers = itertools.count(1)
nodes, places = st.sampled_from(NODES), st.sampled_from(PARTITIONS)
replies = st.booleans()


@dataclass
class Node:
    """What a node knows: its partitions, their epochs, and until when it may fetch their URLs."""

    name: str
    owned: dict[int, Identity] = field(default_factory=dict)
    until_ms: dict[int, int] = field(default_factory=dict)

    def forget(self, partition: int) -> None:
        self.owned.pop(partition, None)
        self.until_ms.pop(partition, None)


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self, runner: ScriptRunner) -> None:
        super().__init__()
        number = next(_numbers)
        self.runner, self.now_ms, self.generation = runner, T0, 0
        self.crawls = (f"leases{number}-block", f"leases{number}-single")
        self.nodes = {name: Node(name) for name in NODES}
        self.sent: list[Callable[[], Any]] = []  # calls that may arrive once more
        self.kept: dict[bytes, bytes] = {}  # what is on the disk of Redis
        self.has_forgotten = False

    # --- both crawls

    def run(self, made: Callable[[str], Call[Any]]) -> Any:
        """Run the call in both crawls, now, and whenever it comes again; the reply, which both give."""
        calls = [made(crawl) for crawl in self.crawls]

        def arrive() -> Any:
            block, single = (self.answer(call, is_single=at == 1) for at, call in enumerate(calls))
            assert block == single
            return block

        self.sent.append(arrive)
        return arrive()

    def answer(self, call: Call[Any], *, is_single: bool) -> Any:
        [command] = script_texts.commands([call], is_cluster=is_single)
        [reply] = self.runner.client.execute_command(*command.words)
        return call.parse(reply)

    def keys(self, crawl: str, partition: int) -> PartitionKeys:
        return PartitionKeys(crawl, partition)

    def renew_singly(self, node: str, rows: Sequence[tuple[int, int]], sent_ms: int) -> list[int]:
        """Renew leases where there are no block leases; the partitions that the node does not own."""
        crawl = self.crawls[1]
        return [
            partition
            for partition, epoch in rows
            if self.answer(
                scripts.renew_leases([self.keys(crawl, partition)], node, [epoch], LEASE_MS, sent_ms), is_single=True
            )
        ]

    def renew_block(self, node: str, rows: Sequence[tuple[int, int]]) -> bool:
        """Renew the block lease; if it is, the node owns each partition, and those are renewed singly as well."""
        name, sent_ms = self.keys(self.crawls[0], rows[0][0]).leases, self.now_ms

        def arrive() -> bool:
            call = scripts.renew_block_leases({name: rows}, node, LEASE_MS, sent_ms)
            if self.answer(call, is_single=False):
                return False
            assert self.renew_singly(node, rows, sent_ms) == []
            return True

        self.sent.append(arrive)
        return arrive()

    def renew_each(self, node: str, rows: Sequence[tuple[int, int]]) -> list[int]:
        sent_ms = self.now_ms
        keys = [self.keys(self.crawls[0], partition) for partition, _ in rows]

        def arrive() -> list[int]:
            call = scripts.renew_leases(keys, node, [epoch for _, epoch in rows], LEASE_MS, sent_ms)
            lost = [rows[place][0] for place in self.answer(call, is_single=False)]
            assert lost == self.renew_singly(node, rows, sent_ms)
            return lost

        self.sent.append(arrive)
        return arrive()

    def dump(self) -> dict[bytes, bytes]:
        client = self.runner.client
        found = [key for crawl in self.crawls for key in client.scan_iter(match=f"bigcrawl:{{{crawl}*", count=1000)]
        return {key: client.dump(key) for key in found}

    def left_ms(self, crawl: str, partition: int) -> int:
        call = scripts.look_partition(self.keys(crawl, partition), now_ms=self.now_ms)
        return max(0, int(self.answer(call, is_single=crawl == self.crawls[1]).lease_left_ms))

    # --- rules

    @initialize()
    def begin(self) -> None:
        self.kept = self.dump()
        for at, partition in enumerate(PARTITIONS):
            self.claim(NODES[at % 2], partition, True)

    @rule(ms=st.sampled_from([0, 1, 1_000, LEASE_MS // 2, LEASE_MS - 1, LEASE_MS, 3_600_000]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(name=nodes, partition=places, is_answered=replies)
    def claim(self, name: str, partition: int, is_answered: bool) -> None:
        self.generation += 1
        node, generation, now_ms = self.nodes[name], self.generation, self.now_ms
        reply = self.run(
            lambda crawl: scripts.claim_partition(
                self.keys(crawl, partition),
                node=name,
                token=f"token-{name}",
                lease_ms=LEASE_MS,
                epoch_min=0,
                dead_token="",
                deadline_ms=DEADLINE_MS,
                abort_ms=ABORT_MS,
                forgotten_ms=DEADLINE_MS,
                delay_ms=DELAY_MS,
                generation=generation,
                now_ms=now_ms,
                server="server",
            )
        )
        if is_answered and isinstance(reply, GrantedClaim):
            node.owned[partition] = Identity(name, reply.epoch, generation)
            node.until_ms[partition] = now_ms + LEASE_MS

    @rule(
        name=nodes, block=st.integers(0, 1), left_out=st.sets(places, max_size=2), answered=st.tuples(replies, replies)
    )
    def renew(self, name: str, block: int, left_out: set[int], answered: tuple[bool, bool]) -> None:
        """As `PartitionPolls`: the block lease, then the partitions' own if that has others."""
        node, sent_ms = self.nodes[name], self.now_ms
        owned = sorted(p for p in node.owned.keys() - left_out if p // LEASES_TOGETHER == block)
        if not owned:
            return
        rows = [(p, node.owned[p].epoch) for p in owned]
        is_renewed, lost = self.renew_block(name, rows), list[int]()
        if not answered[0]:
            return
        if not is_renewed:
            lost = self.renew_each(name, rows)
            if not answered[1]:
                return
        for partition in lost:
            node.forget(partition)
        for partition in node.owned.keys() & set(owned):
            node.until_ms[partition] = sent_ms + LEASE_MS

    @rule(name=nodes, partition=places, is_answered=replies)
    def look(self, name: str, partition: int, is_answered: bool) -> None:
        node, now_ms = self.nodes[name], self.now_ms
        if (identity := node.owned.get(partition)) is None:
            return
        calls = [
            scripts.look_partition(self.keys(crawl, partition), identity, LEASE_MS, now_ms) for crawl in self.crawls
        ]
        views = [self.answer(call, is_single=at == 1) for at, call in enumerate(calls)]
        assert views[0].owned == views[1].owned
        if is_answered and views[0].owned:
            node.until_ms[partition] = now_ms + LEASE_MS
        elif is_answered:
            node.forget(partition)

    @rule(name=nodes, partition=places, is_answered=replies)
    def release(self, name: str, partition: int, is_answered: bool) -> None:
        node = self.nodes[name]
        if (identity := node.owned.get(partition)) is None:
            return
        node.until_ms.pop(partition, None)  # it has drained: no URL of it is fetched, or taken any more
        self.run(lambda crawl: scripts.release_partition(self.keys(crawl, partition), identity))
        if is_answered:
            node.forget(partition)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), after_ms=st.sampled_from([0, 60_000]))
    def call_arrives_again(self, data: st.DataObject, after_ms: int) -> None:
        self.now_ms += after_ms
        data.draw(st.sampled_from(self.sent[-12:]))()

    @rule()
    def redis_saves(self) -> None:
        self.kept = self.dump()

    @rule()
    def redis_forgets(self) -> None:
        """All that came after its last save."""
        client = self.runner.client
        for key in self.dump():
            client.delete(key)
        for key, value in self.kept.items():
            client.restore(key, 0, value)
        self.has_forgotten = True

    # --- what holds

    @invariant()
    def leases_end_together(self) -> None:
        for partition in PARTITIONS:
            block, single = (self.left_ms(crawl, partition) for crawl in self.crawls)
            assert block == single, partition

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        """By what the nodes know, unless Redis has forgotten who owns it."""
        for partition in PARTITIONS if not self.has_forgotten else ():
            owners = [n for n in self.nodes.values() if n.until_ms.get(partition, 0) > self.now_ms]
            assert len(owners) <= 1, partition

    def teardown(self) -> None:
        for crawl in self.crawls:
            self.runner.delete(f"bigcrawl:{{{crawl}")


def test_block_leases_are_those_of_their_partitions(redis_server: PrivateRedis) -> None:
    """Whatever is lost, late, repeated or forgotten."""
    runner = ScriptRunner(redis_server.client, SCRIPT_NAMES)
    run_state_machine_as_test(partial(LeaseMachine, runner), settings=SETTINGS)  # type: ignore[arg-type]
