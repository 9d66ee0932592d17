"""A client whose messages to a real Redis are refused, lost, cut short or late, and a Redis that forgets.

    refused     some calls of a round trip get an error reply and change nothing; the others are carried out
    unheard     all are carried out, and the reply is lost
    unsent      none is carried out, and the connection is lost
    cut short   the first ones are carried out, then the connection is lost
    late        the connection is lost; all are carried out when `Network.deliver` says so, however much later

What a script would be refused inside one command of many calls is refused here call by call: the command is taken
apart. The time of the crawls is the test's own clock.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgpack
from redis import exceptions as errors

from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.reply_errors import RedisRestartedError
from tests.support.redis_servers.one_clock import OneClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import redis

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.scripts import Value

T0 = 1_700_000_000_000
DAY_MS = 86_400_000
_days = itertools.count()
Row = tuple["Value", ...]


class Fault(Enum):
    """What happens to the messages of one round trip."""

    REFUSED = "refused"
    UNHEARD = "unheard"
    UNSENT = "unsent"
    CUT_SHORT = "cut short"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Plan:
    """A fault, and which calls of the round trip it strikes: bit n of `pattern`, which repeats itself, is call n."""

    fault: Fault
    pattern: int = 0b1

    def strikes(self, call: int) -> bool:
        return bool(self.pattern >> call % self.pattern.bit_length() & 1)


class Network:
    """What lies between the nodes of a crawl and its Redis.

    Attributes:
        began_ms: when the crawl begins. Each begins on another day, because crawls of one Redis meet: a killed
            node of an earlier crawl would count as alive in this one.
        plans: the faults of the next round trips, None for one that goes well; nothing more goes wrong after them.
        round_trips: how many there were; under_way: how many have not come back.
        is_away: whether nobody can be asked.
        kept: what Redis held after each round trip, as long as there is a list for it.
    """

    def __init__(self, server: redis.Redis, crawl: str) -> None:
        self._server = server
        self._crawl = crawl
        self.began_ms = T0 + next(_days) * DAY_MS
        self._late: deque[list[Row]] = deque()
        self.plans: deque[Plan | None] = deque()
        self.restarts = 0
        self.is_away = False
        self.kept: list[dict[bytes, tuple[int, bytes]]] | None = None
        self.round_trips = 0
        self.under_way = 0
        self.struck: list[str] = []  # what went wrong, for a reader of a failure

    def __repr__(self) -> str:
        return f"<Network round_trips={self.round_trips} late={len(self._late)}>"

    def next_plan(self, rows: Sequence[Row]) -> Plan | None:
        """What happens to the round trip that carries `rows`."""
        self.round_trips += 1
        plan = self.plans.popleft() if self.plans else None
        if plan is not None:
            self.struck.append(f"{self.round_trips}: {plan.fault.value} {plan.pattern:b}: {_told(rows)}")
        return plan

    def hold_back(self, rows: list[Row]) -> None:
        """Carry the rows out later."""
        self._late.append(rows)

    def deliver(self) -> bool:
        """Carry out what came late longest ago; False when nothing is late."""
        if not self._late:
            return False
        rows = self._late.popleft()
        self.struck.append(f"{self.round_trips}: arrives late: {_told(rows)}")
        pipeline = self._server.pipeline(transaction=False)
        for row in rows:
            pipeline.execute_command(*row)
        pipeline.execute(raise_on_error=False)
        return True

    # --- a Redis that forgets

    def snapshot(self) -> dict[bytes, tuple[int, bytes]]:
        """Every key of the crawl: how long it lives yet, and its value."""
        keys = list(self._server.scan_iter(match=f"bigcrawl:{{{self._crawl}*", count=10_000))
        pipeline = self._server.pipeline(transaction=False)
        for key in keys:
            pipeline.pttl(key)
            pipeline.dump(key)
        replies = pipeline.execute()
        rows = zip(keys, replies[::2], replies[1::2], strict=True)
        return {key: (max(0, ttl_ms), value) for key, ttl_ms, value in rows if value is not None}

    def rewind(self, snapshot: dict[bytes, tuple[int, bytes]]) -> None:
        """Restart Redis with what it held then."""
        self.delete_all()
        pipeline = self._server.pipeline(transaction=False)
        for key, (ttl_ms, value) in snapshot.items():
            pipeline.restore(key, ttl_ms, value)
        pipeline.execute()
        self.restarts += 1
        self.struck.append(f"{self.round_trips}: Redis restarts")

    def delete_all(self) -> None:
        """Delete every key of the crawl."""
        for key in list(self._server.scan_iter(match=f"bigcrawl:{{{self._crawl}*", count=10_000)):
            self._server.delete(key)


class UnreliableClient(RedisClient):
    """A node's client on such a network, on the test's clock."""

    def __init__(self, url: str, network: Network, clock: Clock) -> None:
        super().__init__(url, crawl_clock=OneClock(clock))
        self._network = network
        self._test_clock = clock
        self._restarts_seen = network.restarts

    def now_ms(self) -> int:
        return self._network.began_ms + self._test_clock.monotonic_ms()

    @property
    def server_run_id(self) -> str:
        return f"server {self._restarts_seen}"

    async def accept_restart(self) -> None:
        self._restarts_seen = self._network.restarts
        await super().accept_restart()

    async def _round_trip(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        self._network.under_way += 1
        try:
            return await self._unreliable_round_trip(rows)
        finally:
            self._network.under_way -= 1
            if self._network.kept is not None:
                self._network.kept.append(self._network.snapshot())

    async def _unreliable_round_trip(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        if self._network.is_away:
            raise errors.ConnectionError("the test's network: away")
        if self._restarts_seen != self._network.restarts:
            raise RedisRestartedError("Redis was restarted")
        sent = [tuple(row) for row in rows]
        plan = self._network.next_plan(sent)
        if plan is None:
            return await super()._round_trip(rows)
        if plan.fault is Fault.REFUSED:
            return await self._refuse_some(sent, plan)
        if plan.fault is Fault.UNHEARD:
            await super()._round_trip(rows)
        elif plan.fault is Fault.CUT_SHORT:
            await super()._round_trip(rows[: (len(rows) + 1) // 2])
        elif plan.fault is Fault.LATE:
            self._network.hold_back(sent)
        raise errors.ConnectionError(f"the test's network: {plan.fault.value}")

    async def _refuse_some(self, rows: list[Row], plan: Plan) -> list[Any]:
        calls = 0

        def is_struck() -> bool:
            nonlocal calls
            calls += 1
            return plan.strikes(calls - 1)

        return [await self._refuse_some_of(row, is_struck) for row in rows]

    async def _refuse_some_of(self, row: Row, is_struck: Callable[[], bool]) -> Any:
        if row[0] != "EVALSHA":
            return _REFUSAL if is_struck() else (await super()._round_trip([row]))[0]
        inner = msgpack.unpackb(row[-1], raw=True)
        struck = [is_struck() for _ in inner]
        if not any(struck):
            return (await super()._round_trip([row]))[0]
        carried_out = [call for call, refused in zip(inner, struck, strict=True) if not refused]
        if not carried_out:
            return [_REFUSAL] * len(inner)
        packed = msgpack.packb(carried_out, use_bin_type=False)
        [reply] = await super()._round_trip([(*row[:-1], packed)])
        if isinstance(reply, Exception):
            return reply
        answers = iter(reply)
        return [_REFUSAL if refused else next(answers) for refused in struck]


_REFUSAL = errors.OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'.")


def _told(rows: Sequence[Row]) -> str:
    """The rows in short: scripts by their digest's first letters would tell nobody anything."""
    return ", ".join(_name(row) for row in rows)


def _name(row: Row) -> str:
    if row[0] != "EVALSHA":
        return str(row[0])
    from bigcrawl.redisdb import script_texts

    names = {script_texts.script_digest(name): name for name in script_texts.script_names()}
    return f"{names.get(str(row[1]), '?')} x {len(msgpack.unpackb(row[-1], raw=True))}"
