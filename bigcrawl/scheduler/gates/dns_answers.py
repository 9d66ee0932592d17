"""DNS answers that nodes share: the hash of a name selects a cell in Redis, which keeps an answer for its TTL."""

from __future__ import annotations

import asyncio
import logging
import zlib
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from bigcrawl.clock import Patience
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.politeness.dns_cache import DnsAnswer

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.keys import CrawlKeys
    from bigcrawl.redisdb.scripts import Value

logger = logging.getLogger(__name__)

FORMAT = "1"
PATIENCE_S = 1.0
UNSENT_MAX = 10_000


class SharedDnsAnswers:
    def __init__(self, client: RedisClient, keys: CrawlKeys, cells: int) -> None:
        self._client = client
        self._keys = keys
        self._cells = cells
        self._asked: dict[str, asyncio.Future[DnsAnswer | None]] = {}
        self._unsent: dict[str, DnsAnswer] = {}
        self._talk: asyncio.Task[None] | None = None
        self.found = 0

    def __repr__(self) -> str:
        return f"<SharedDnsAnswers asked={len(self._asked)} unsent={len(self._unsent)} found={self.found}>"

    async def get(self, host: str) -> DnsAnswer | None:
        asked = self._asked.get(host)
        if asked is None:
            asked = self._asked[host] = asyncio.get_running_loop().create_future()
            self._start_exchange()
        with suppress(TimeoutError):
            async with Patience(PATIENCE_S):
                return await asyncio.shield(asked)
        return None

    def put(self, host: str, answer: DnsAnswer) -> None:
        """Put an answer into the next round trip, to share it; no I/O here."""
        if answer.ttl_ms and len(self._unsent) < UNSENT_MAX:
            self._unsent[host] = answer
            self._start_exchange()

    async def close(self) -> None:
        if self._talk is not None:
            self._talk.cancel()
            await asyncio.gather(self._talk, return_exceptions=True)
        self._answer_all(self._asked, {})
        self._asked = {}

    def _start_exchange(self) -> None:
        if self._talk is None or self._talk.done():
            self._talk = asyncio.get_running_loop().create_task(self._exchange_all(), name="bigcrawl-answers")

    async def _exchange_all(self) -> None:
        while self._asked or self._unsent:
            await asyncio.sleep(0)
            asked, self._asked = self._asked, {}
            shared, self._unsent = self._unsent, {}
            found: dict[str, DnsAnswer] = {}
            try:
                found = await self._exchange(list(asked), shared)
            except BigcrawlError as error:
                logger.debug("DNS answers are not shared between nodes: %(error)s", {"error": error})
            finally:
                self._answer_all(asked, found)

    def _answer_all(self, asked: dict[str, asyncio.Future[DnsAnswer | None]], found: dict[str, DnsAnswer]) -> None:
        self.found += len(found)
        for host, future in asked.items():
            if not future.done():
                future.set_result(found.get(host))

    async def _exchange(self, asked: list[str], shared: dict[str, DnsAnswer]) -> dict[str, DnsAnswer]:
        rows: list[tuple[Value, ...]] = []
        for host in asked:
            rows += [("GET", self._key(host)), ("PTTL", self._key(host))]
        for host, answer in shared.items():
            text = "\n".join((FORMAT, host, *answer.addresses))
            rows.append(("SET", self._key(host), text, "PX", answer.ttl_ms or 1))
        replies = await self._client.commands(rows)
        read = {host: _read_answer(host, *replies[2 * i : 2 * i + 2]) for i, host in enumerate(asked)}
        return {host: answer for host, answer in read.items() if answer is not None}

    def _key(self, host: str) -> str:
        return _key_of(self._keys, self._cells, host)


async def shared_addresses(client: RedisClient, keys: CrawlKeys, cells: int, host: str) -> tuple[str, ...]:
    answer = _read_answer(host, await client.command("GET", _key_of(keys, cells, host)), 1)
    return answer.addresses if answer is not None else ()


def _key_of(keys: CrawlKeys, cells: int, host: str) -> str:
    return keys.answer(zlib.crc32(host.encode()) % cells)


def _read_answer(host: str, packed: Any, left_ms: int) -> DnsAnswer | None:
    if not isinstance(packed, bytes) or left_ms <= 0:
        return None
    try:
        version, about, *addresses = packed.decode("ascii").split("\n")
        for address in addresses:
            ip_address(address)
    except ValueError:
        return None
    return DnsAnswer(tuple(addresses), left_ms) if (version, about) == (FORMAT, host) else None
