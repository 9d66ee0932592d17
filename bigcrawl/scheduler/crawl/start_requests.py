"""The start requests: run by one node under a claim that it renews, once for each spider and its arguments."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bigcrawl.logs.plain import excerpt_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl

SEEDS: Final = "seeds"
"""The field of the crawl record with the first start requests of the crawl, JSON."""

SEEDS_MAX: Final = 5
SEED_CHARACTERS: Final = 200


class StartRequests:
    """The start requests as one node sees them; `is_done` once some node has sent all of them to the inboxes."""

    def __init__(self, crawl: JoinedCrawl, heartbeat: Callable[[], Awaitable[None]]) -> None:
        self._client = crawl.client
        self._keys = CrawlKeys(crawl.config.crawl.name)
        self._lease_ms = crawl.config.frontier.lease_ms
        self._membership = crawl.membership
        self._node_id = crawl.node_id
        self._heartbeat = heartbeat
        self._digest = ""
        self._seeds: list[str] = []
        self.is_done = False

    def __repr__(self) -> str:
        return f"<StartRequests {self._digest} done={self.is_done}>"

    @property
    def are_under_way(self) -> bool:
        return bool(self._digest) and not self.is_done

    async def claim(self, digest: str) -> int:
        """Claim the start requests or renew the claim. Return 1: this node's, 0: another node's, 2: done."""
        self._digest = digest
        [answer] = await self._client.run([self._call()])
        if answer == 0 and await self._release_dead_claim():
            [answer] = await self._client.run([self._call()])
        self.is_done = answer == 2
        return int(answer)

    async def were_sent(self) -> bool:
        names = [name for name in await self._client.command("HKEYS", self._keys.crawl) if name.startswith(b"start:")]
        values = await self._client.commands([("HGET", self._keys.crawl, name) for name in names])
        return any(value and value.partition(b"\n")[0] == b"done" for value in values)

    async def renew(self) -> None:
        if self.are_under_way:
            await self._client.run([self._call()])

    def record_seeds(self, urls: Sequence[str]) -> None:
        if len(self._seeds) < SEEDS_MAX:
            self._seeds += [excerpt_of(url, SEED_CHARACTERS) for url in urls[: SEEDS_MAX - len(self._seeds)]]

    async def end(self) -> None:
        self.is_done = True
        await self._client.run([self._call(done=True)])
        if self._seeds:
            with suppress(RedisRefusedError):  # a full Redis must not hold up the start
                await self._client.command("HSETNX", self._keys.crawl, SEEDS, json.dumps(self._seeds))

    async def end_again(self) -> None:
        if self.is_done:
            await self.end()

    async def leave_undone(self) -> None:
        if self.are_under_way:
            await self._client.run([self._call(undone=True)])
            self._digest = ""

    async def _release_dead_claim(self) -> bool:
        value = await self._client.command("HGET", self._keys.crawl, f"start:{self._digest}")
        runner = (value or b"").partition(b"\n")[0].decode()
        await self._heartbeat()  # nodes beat before they claim, so a live one is in the reports now
        if not runner or runner in self._membership.reports:
            return False
        await self._client.run([scripts.claim_start(self._keys, runner, self._digest, 0, undone=True)])
        return True

    def _call(self, *, done: bool = False, undone: bool = False) -> scripts.Call[int]:
        return scripts.claim_start(self._keys, self._node_id, self._digest, self._lease_ms, done=done, undone=undone)
