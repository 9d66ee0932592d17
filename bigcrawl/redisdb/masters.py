"""The masters of a Redis Cluster: their hash slots, and connections to each.

If a slot has moved, the server names its new master (MOVED, or ASK while it is moving). The commands of one slot stay
in order: they use one connection, and are repeated together. While a slot is moving, a script with several keys is
refused before it begins (TRYAGAIN); the caller repeats it.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from redis import exceptions as errors
from redis.crc import key_slot

from bigcrawl.redisdb.connections import ConnectionPool
from bigcrawl.redisdb.script_texts import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis.asyncio.connection import AbstractConnection

    from bigcrawl.redisdb.scripts import Value

REDIRECTIONS_MAX: Final = 5

TAGS_CACHED: Final = 1 << 14


class Address(NamedTuple):
    host: str
    port: int


class Masters:
    """The known masters, for one event loop. A connection of `make` must call `check_known` when it opens."""

    def __init__(self, make: Callable[[Address], AbstractConnection], most: int, seeds: Sequence[Address]) -> None:
        self._make = make
        self._most = most
        self.seeds = list(seeds)
        self._by_slot: dict[int, Address] = {}
        self._pools: dict[Address, ConnectionPool] = {}
        self._run_ids: set[str] = set()
        self._is_meeting = False
        self._is_stale = True

    def __repr__(self) -> str:
        return f"<Masters {sorted(set(self._by_slot.values()))}>"

    @property
    def run_id(self) -> str:
        """Identifies the processes of all masters together."""
        return hashlib.sha1(" ".join(sorted(self._run_ids)).encode(), usedforsecurity=False).hexdigest()

    def check_known(self, run_id: str) -> None:
        """Raise ConnectionError ("restarted:...") for a new server process, which may have forgotten writes."""
        if self._is_meeting:
            self._run_ids.add(run_id)
        elif run_id not in self._run_ids:
            raise errors.ConnectionError(f"restarted:{run_id}")

    def forget_run_ids(self) -> None:
        """Make the next connection report a restart."""
        self._run_ids.clear()

    async def learn_masters(self) -> None:
        self._is_meeting = True
        self._run_ids.clear()
        try:
            await self._read_slots()
            for pool in self._all_pools():
                pool.give_back(await pool.take())
        finally:
            self._is_meeting = False

    async def round_trip(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        """Send each command to its master, one without a key to all, and return the replies, errors as exceptions."""
        if self._is_stale:
            await self._read_slots()
        replies: list[Any] = [None] * len(rows)
        left = list(range(len(rows)))
        for _ in range(REDIRECTIONS_MAX):
            by_master: dict[Address, list[int]] = {}
            for at in left:
                for master in self._masters_of(rows[at]):
                    by_master.setdefault(master, []).append(at)
            answered: dict[int, Any] = {}
            for master, places, answers in await self._talk_to_each(by_master, rows):
                for at, answer in zip(places, answers, strict=True):
                    if not isinstance(answered.get(at), Exception):
                        answered[at] = await self._follow_redirection(master, rows[at], answer)
            for at, answer in answered.items():
                replies[at] = answer
            left = [at for at in left if isinstance(replies[at], errors.MovedError)]
            if not left:
                return replies
        raise errors.TryAgainError("a slot of the cluster was moved during every attempt; try again later")

    async def ask_each(self, row: Sequence[Value]) -> list[Any]:
        if self._is_stale:
            await self._read_slots()
        replies = [reply for pool in self._all_pools() for reply in await pool.send_commands([row])]
        if failed := next((reply for reply in replies if isinstance(reply, errors.RedisError)), None):
            raise failed
        return replies

    async def pools(self) -> list[ConnectionPool]:
        if self._is_stale:
            await self._read_slots()
        return self._all_pools()

    async def disconnect(self) -> None:
        for pool in self._pools.values():
            await pool.disconnect()

    async def _talk_to_each(
        self, by_master: dict[Address, list[int]], rows: Sequence[Sequence[Value]]
    ) -> list[tuple[Address, list[int], list[Any]]]:
        talks = [self._pool(master).send_commands([rows[at] for at in places]) for master, places in by_master.items()]
        try:
            answers = [await talks[0]] if len(talks) == 1 else await asyncio.gather(*talks, return_exceptions=True)
        except BaseException:
            self._is_stale = True  # the master may have been replaced
            raise
        if failed := next((answer for answer in answers if isinstance(answer, BaseException)), None):
            self._is_stale = True
            raise failed
        return [
            (master, places, answer)
            for (master, places), answer in zip(by_master.items(), answers, strict=True)
            if not isinstance(answer, BaseException)
        ]

    async def _follow_redirection(self, master: Address, row: Sequence[Value], answer: Any) -> Any:
        """Follow ASK for this command; record MOVED, so that it is sent again to the new master."""
        if isinstance(answer, errors.MovedError):
            self._by_slot[answer.slot_id] = Address(answer.host or master.host, answer.port)
            self._is_stale = True
        elif isinstance(answer, errors.AskError):
            pool = self._pool(Address(answer.host or master.host, answer.port))
            _, answer = await pool.send_commands([("ASKING",), row])
        return answer

    def _masters_of(self, row: Sequence[Value]) -> Sequence[Address]:
        key = key_of(row)
        if key is None:
            return sorted(set(self._by_slot.values()))
        slot = _slot_of_tag(_tag_of(key))
        try:
            return (self._by_slot[slot],)
        except KeyError:
            self._is_stale = True
            raise errors.ClusterDownError(f"no master has slot {slot} of the cluster") from None

    async def _read_slots(self) -> None:
        failure: Exception | None = None
        for seed in self.seeds:
            pool = self._pool(seed)
            try:
                [reply] = await pool.send_commands([("CLUSTER", "SLOTS")])
                if isinstance(reply, errors.RedisError):
                    raise reply
            except (errors.RedisError, OSError) as error:
                if "restarted:" in str(error):
                    raise
                failure = failure or error
                continue
            self._record_slots(reply, seed)
            return
        assert failure is not None, "there is a seed"
        raise failure

    def _record_slots(self, reply: Sequence[Any], asked: Address) -> None:
        by_slot: dict[int, Address] = {}
        known: list[Address] = []
        for first, last, master, *replicas in reply:
            addresses = [_parse_address(entry, asked) for entry in (master, *replicas)]
            by_slot |= dict.fromkeys(range(first, last + 1), addresses[0])
            known += addresses
        self._by_slot = by_slot
        # Masters first: a replica answers too, but its process may be unknown.
        masters = sorted(set(by_slot.values()))
        self.seeds = list(dict.fromkeys((*masters, *known, *self.seeds)))
        self._is_stale = False

    def _all_pools(self) -> list[ConnectionPool]:
        return [self._pool(master) for master in sorted(set(self._by_slot.values()))]

    def _pool(self, address: Address) -> ConnectionPool:
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = ConnectionPool(lambda: self._make(address), self._most)
        return pool


def _parse_address(entry: Sequence[Any], asked: Address) -> Address:
    host = entry[0].decode() if entry[0] else ""
    return Address(asked.host if host in ("", "?") else host, int(entry[1]))


def _tag_of(key: str) -> str:
    start = key.find("{") + 1
    end = key.find("}", start)
    return key[start:end] if start and end > start else key


@lru_cache(TAGS_CACHED)
def _slot_of_tag(tag: str) -> int:
    return key_slot(tag.encode())
