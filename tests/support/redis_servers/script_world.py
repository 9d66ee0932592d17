"""One partition's scripts on a real server or cluster, with a clock of the test's own.

`ScriptRunner` sends calls the way `RedisClient` does, without asyncio; `ScriptWorld` is one partition with an
owner, and `check` reads all its keys and asserts what must hold after any sequence of calls.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import redis

from bigcrawl.redisdb import script_texts, scripts
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.scripts import EndedUrl, ExchangeReply, GrantedClaim, Identity, RefusedClaim

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bigcrawl.redisdb.scripts import Call

T0 = 1_700_000_000_000
DELAY_MS = 1_000
DEADLINE_MS = 60_000
ABORT_MS = 3_000
LEASE_MS = 30_000
HORIZON_MS = 500

Url = tuple[str, int, bytes]


class ScriptRunner:
    """Loads every script on every master, and runs calls in pipelines of plain EVALSHA commands."""

    def __init__(self, client: redis.Redis | redis.RedisCluster, names: Iterable[str]) -> None:
        self.client: Any = client
        self.is_cluster = isinstance(client, redis.RedisCluster)
        everywhere = {"target_nodes": "primaries"} if self.is_cluster else {}
        for name in names:
            self.client.execute_command("SCRIPT LOAD", script_texts.source_for_many(name), **everywhere)

    def run(self, call: Call[Any]) -> Any:
        """Run one call; its parsed reply."""
        [command] = script_texts.commands([call], is_cluster=self.is_cluster)
        [reply] = self.client.execute_command(*command.words)
        return call.parse(reply)

    def run_all(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Run calls in one pipeline; their parsed replies."""
        pipeline = self.pipeline()
        for call in calls:
            [command] = script_texts.commands([call], is_cluster=self.is_cluster)
            pipeline.execute_command(*command.words)
        return [call.parse(reply) for call, [reply] in zip(calls, pipeline.execute(), strict=True)]

    def pipeline(self) -> Any:
        """Commands for one round trip."""
        if self.is_cluster:
            return self.client.pipeline()
        return self.client.pipeline(transaction=False)

    def delete(self, prefix: str) -> None:
        """Delete every key that begins with `prefix`."""
        pipeline = self.pipeline()
        for key in list(self.client.scan_iter(match=prefix + "*", count=1000)):
            pipeline.delete(key)
        pipeline.execute()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every key of a partition's queues, read."""

    queues: dict[str, dict[bytes, float]]
    taken: dict[int, tuple[str, int, int, bytes]]
    ready: dict[str, float]
    busy: dict[str, int]
    hot: int

    @property
    def queued_seqs(self) -> list[int]:
        return [seq_of(member) for queue in self.queues.values() for member in queue]


class ScriptWorld:
    """A partition, its owner `who`, the clock `now_ms`, and what was admitted to it."""

    def __init__(self, runner: ScriptRunner, crawl: str, partition: int = 0, connections: int = 1) -> None:
        self.runner = runner
        self.client = runner.client
        self.keys = PartitionKeys(crawl, partition)
        self.connections = connections
        self.now_ms = T0
        self.who = Identity("", 0)
        self.number = 0
        self.generation = 0
        self.seq = 0
        self.head_start_ms = 0

    # --- calls, with the arguments that tests rarely vary

    def claim(
        self,
        node: str = "a",
        dead_token: str = "",
        epoch_min: int = 0,
        server: str = "server",
        abort_ms: int = ABORT_MS,
    ) -> GrantedClaim | RefusedClaim:
        """Claim for `node`, whose token is "token-<node>", on a server; a won claim makes it `who`."""
        self.generation += 1
        call = scripts.claim_partition(
            self.keys,
            node=node,
            token=f"token-{node}",
            lease_ms=LEASE_MS,
            epoch_min=epoch_min,
            dead_token=dead_token,
            deadline_ms=DEADLINE_MS,
            abort_ms=abort_ms,
            forgotten_ms=DEADLINE_MS,
            delay_ms=DELAY_MS,
            generation=self.generation,
            now_ms=self.now_ms,
            server=server,
        )
        result: GrantedClaim | RefusedClaim = self.runner.run(call)
        if isinstance(result, GrantedClaim):
            self.who = Identity(node, result.epoch, result.generation)
        return result

    def urls(self, *rows: str | tuple[str, int]) -> list[Url]:
        """Number URLs on: "host", or ("host", priority order to add); higher seq, later place."""
        made = []
        for row in rows:
            host, order = (row, 0) if isinstance(row, str) else row
            self.seq += 1
            made.append((host, order + self.seq, b"%d:\x00url\n" % self.seq))
        return made

    def admit(self, *rows: str | tuple[str, int]) -> bool:
        """Admit the next numbered batch."""
        self.number += 1
        return self.admit_as(self.number, self.urls(*rows))

    def admit_as(self, number: int, urls: Sequence[Url]) -> bool:
        """Admit `urls` as batch `number`."""
        packed = b"%d" % number
        call = scripts.admit_urls(
            self.keys, self.who, number, packed, self.connections, urls, self.now_ms, head_start_ms=self.head_start_ms
        )
        return bool(self.runner.run(call))

    def exchange(
        self, urls_max: int, horizon_ms: int, *ended: EndedUrl, ahead: Sequence[tuple[str, int]] = ()
    ) -> ExchangeReply:
        """End and take in one call."""
        call = scripts.exchange_urls(
            self.keys, self.who, self.connections, urls_max, horizon_ms, DELAY_MS, ended, self.now_ms, ahead=ahead
        )
        exchanged: ExchangeReply = self.runner.run(call)
        return exchanged

    def take(self, urls_max: int = 100, horizon_ms: int = 0) -> ExchangeReply:
        return self.exchange(urls_max, horizon_ms)

    def take_seqs(self, urls_max: int = 100, horizon_ms: int = 0) -> list[int]:
        """Take; the sequence numbers, earliest due first."""
        return [seq_of(url.member) for url in self.take(urls_max, horizon_ms).urls]

    def end(self, *ended: EndedUrl) -> int:
        return self.exchange(0, 0, *ended).ended

    def acknowledge(self, *seqs: int, delay_ms: int = DELAY_MS) -> int:
        return self.end(*(EndedUrl(seq, delay_ms, b"", "status:200", 10) for seq in seqs))

    def give_back(self, *seqs: int, delay_ms: int = DELAY_MS) -> int:
        return self.end(*(EndedUrl(seq, delay_ms, b"=") for seq in seqs))

    def reconcile(
        self,
        held: Sequence[tuple[int, Url]] = (),
        ended: Sequence[tuple[int, Url]] = (),
        rests: dict[str, int] | None = None,
        places: Sequence[tuple[str, int]] = (),
        delay_ms: int = 0,
        told: Sequence[int] = (),
        server: str = "server",
    ) -> Any:
        """Reconcile in the next generation; rows are (seq, (host, order, member)), `delay_ms` says that Redis forgot.

        Returns:
            The URLs given back, taken again, and removed.
        """
        self.generation += 1
        who = replace(self.who, generation=self.generation)
        rows = [(seq, *url) for seq, url in held]
        gone = [(seq, host, order) for seq, (host, order, _) in ended]
        reply = self.runner.run(
            scripts.reconcile_partition(
                self.keys,
                who,
                1,
                delay_ms,
                rows,
                (),
                [(seq,) for seq in told],
                gone,
                places,
                rests or {},
                server=server,
                now_ms=self.now_ms,
            )
        )
        self.who = who
        return reply[:3]

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    # --- reading

    def snapshot(self) -> Snapshot:
        """Read every key of the partition's queues; nothing else calls meanwhile."""
        back = list(self.client.scan_iter(match=self.keys.back + "*", count=1000))
        pipeline = self.runner.pipeline()
        for key in back:
            pipeline.zrange(key, 0, -1, withscores=True)
        pipeline.zrange(self.keys.ready, 0, -1, withscores=True)
        pipeline.hgetall(self.keys.taken)
        pipeline.hgetall(self.keys.busy)
        pipeline.hget(self.keys.state, "hot")
        *waiting, due, records, counts, hot = pipeline.execute()
        hosts = [key.decode().removeprefix(self.keys.back) for key in back]
        queues = {host: dict(urls) for host, urls in zip(hosts, waiting, strict=True)}
        taken = {}
        for seq, record in records.items():
            host, taken_ms, order, member = record.split(b"\n", 3)
            taken[int(seq)] = (host.decode(), int(taken_ms), int(float(order)), member)
        ready = {host.decode(): score for host, score in due}
        busy = {host.decode(): int(count) for host, count in counts.items()}
        return Snapshot(queues, taken, ready, busy, int(hot or 0))

    def host_state(self, host: str) -> str:
        """Ready and in how many ms, busy and with how many URLs, both, or "" for neither."""
        seen = self.snapshot()
        words = [f"ready {int(seen.ready[host]) - self.now_ms}"] if host in seen.ready else []
        return ", ".join(words + ([f"busy {seen.busy[host]}"] if host in seen.busy else []))

    def count(self, field: str) -> int:
        """A field of the partition's state."""
        return int(self.client.hget(self.keys.state, field) or 0)

    def next_ms(self, host: str) -> int:
        """The host record's next allowed fetch time; 0 when there is none."""
        return int(self.client.hget(self.keys.host + host, "next") or 0)

    def check(self) -> Snapshot:
        """Assert what holds after any sequence of calls."""
        seen = self.snapshot()
        queued = Counter(seen.queued_seqs)
        assert not queued or max(queued.values()) == 1, "a URL is queued once"
        assert not queued.keys() & seen.taken.keys(), "a URL is in its back queue or taken, never both"
        assert all(seq_of(member) == seq for seq, (_, _, _, member) in seen.taken.items())
        assert seen.hot == queued.total(), "hot is the number of URLs in back queues"
        assert seen.busy == Counter(host for host, _, _, _ in seen.taken.values()), "busy counts taken URLs"
        for host in seen.queues:
            full = seen.busy.get(host, 0) >= self.connections
            assert host in seen.ready or host in seen.busy, f"{host} has URLs waiting and is neither ready nor busy"
            assert not (full and host in seen.ready), f"{host} is ready though all its connections are in use"
        return seen


def seq_of(member: bytes) -> int:
    return int(member.partition(b":")[0])
