"""What nodes of a crawl tell each other of names (step 10): an answer that one got is used by the others.

Answers lie in a set number of cells in Redis, each under the cell that its name's hash says: another name of the cell
takes its place, and Redis forgets it at the end of its TTL. So the room is bounded without anybody counting. Questions
and words of a turn of the event loop, or of a round trip that is under way, go together in one.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from bigcrawl.clock import Patience
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.politeness.dns_cache import Answer

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.keys import CrawlKeys
    from bigcrawl.redisdb.scripts import Value

logger = logging.getLogger(__name__)

FORMAT = "1"
PATIENCE_S = 1.0  # a name is looked up here rather than waited for
TOLD_MAX = 10_000  # words that wait for Redis; more are not told


class SharedAnswers:
    """An `AnswerStore` of a crawl's nodes."""

    def __init__(self, client: RedisClient, keys: CrawlKeys, cells: int) -> None:
        """Share as many answers as there are `cells`, the same number on all nodes."""
        self._client = client
        self._keys = keys
        self._cells = cells
        self._asked: dict[str, asyncio.Future[Answer | None]] = {}
        self._told: dict[str, Answer] = {}
        self._talk: asyncio.Task[None] | None = None
        self.found = 0
        """Questions that needed no name server."""

    def __repr__(self) -> str:
        return f"<SharedAnswers asked={len(self._asked)} told={len(self._told)} found={self.found}>"

    async def get(self, host: str) -> Answer | None:
        """What another node has found out of a host, if anything; raises nothing."""
        asked = self._asked.get(host)
        if asked is None:
            asked = self._asked[host] = asyncio.get_running_loop().create_future()
            self._begin()
        with suppress(TimeoutError):
            async with Patience(PATIENCE_S):
                return await asyncio.shield(asked)
        return None

    def put(self, host: str, answer: Answer) -> None:
        """Tell the other nodes, with the next round trip; no I/O."""
        if answer.ttl_ms and len(self._told) < TOLD_MAX:
            self._told[host] = answer
            self._begin()

    async def close(self) -> None:
        """Tell nothing any more; who asks is answered None."""
        if self._talk is not None:
            self._talk.cancel()
            await asyncio.gather(self._talk, return_exceptions=True)
        self._answer_all(self._asked, {})
        self._asked = {}

    def _begin(self) -> None:
        if self._talk is None or self._talk.done():
            self._talk = asyncio.get_running_loop().create_task(self._run(), name="bigcrawl-answers")

    async def _run(self) -> None:
        while self._asked or self._told:
            await asyncio.sleep(0)  # what else this turn of the loop wants to ask or tell goes along
            asked, self._asked = self._asked, {}
            told, self._told = self._told, {}
            found: dict[str, Answer] = {}
            try:
                found = await self._exchange(list(asked), told)
            except BigcrawlError as error:
                logger.debug("answers of DNS are not shared: %(error)s", {"error": error})
            finally:
                self._answer_all(asked, found)

    def _answer_all(self, asked: dict[str, asyncio.Future[Answer | None]], found: dict[str, Answer]) -> None:
        self.found += len(found)
        for host, future in asked.items():
            if not future.done():
                future.set_result(found.get(host))

    async def _exchange(self, asked: list[str], told: dict[str, Answer]) -> dict[str, Answer]:
        rows: list[tuple[Value, ...]] = []
        for host in asked:
            rows += [("GET", self._key(host)), ("PTTL", self._key(host))]
        for host, answer in told.items():
            text = "\n".join((FORMAT, host, *answer.addresses))
            rows.append(("SET", self._key(host), text, "PX", answer.ttl_ms or 1))
        replies = await self._client.commands(rows)
        read = {host: _read(host, *replies[2 * i : 2 * i + 2]) for i, host in enumerate(asked)}
        return {host: answer for host, answer in read.items() if answer is not None}

    def _key(self, host: str) -> str:
        return self._keys.answer(zlib.crc32(host.encode()) % self._cells)


def _read(host: str, packed: Any, left_ms: int) -> Answer | None:
    """The answer in a cell; None where there is another host's, or nothing that can be read."""
    if not isinstance(packed, bytes) or left_ms <= 0:
        return None
    try:
        version, about, *addresses = packed.decode("ascii").split("\n")
        for address in addresses:
            ip_address(address)
    except ValueError:
        return None
    return Answer(tuple(addresses), left_ms) if (version, about) == (FORMAT, host) else None
