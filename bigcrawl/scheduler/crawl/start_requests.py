"""The start requests: run by one node at a time under a crawl-wide claim, once for each spider and its arguments.

The claim is renewed once a second and expires with its node's lease. A node known to be dead loses it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.membership import Membership


class StartRequests:
    """This node's share in the start requests.

    Attributes:
        is_done: whether all of them are in the inboxes, sent by this node or another.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        membership: Membership,
        node_id: str,
        heartbeat: Callable[[], Awaitable[None]],
    ) -> None:
        self._client = client
        self._keys = CrawlKeys(config.crawl.name)
        self._lease_ms = config.frontier.lease_ms
        self._membership = membership
        self._node_id = node_id
        self._heartbeat = heartbeat
        self._digest = ""
        self.is_done = False

    def __repr__(self) -> str:
        return f"<StartRequests {self._digest} done={self.is_done}>"

    @property
    def are_under_way(self) -> bool:
        """Whether this node's spider has start requests that are not done."""
        return bool(self._digest) and not self.is_done

    async def claim(self, digest: str) -> int:
        """Claim the start requests or renew the claim: 1 ours, 0 another node's, 2 done."""
        self._digest = digest
        [answer] = await self._client.run([self._call()])
        if answer == 0 and await self._release_dead_claim():
            [answer] = await self._client.run([self._call()])
        self.is_done = answer == 2
        return int(answer)

    async def were_sent(self) -> bool:
        """Whether start requests of this crawl are in the inboxes, whichever spider's and whichever node's."""
        names = [name for name in await self._client.command("HKEYS", self._keys.crawl) if name.startswith(b"start:")]
        values = await self._client.commands([("HGET", self._keys.crawl, name) for name in names])
        return any(value and value.partition(b"\n")[0] == b"done" for value in values)

    async def renew(self) -> None:
        """Renew the claim, if there is one."""
        if self.are_under_way:
            await self._client.run([self._call()])

    async def end(self) -> None:
        """Record that all of them are in the inboxes."""
        self.is_done = True
        await self._client.run([self._call(done=True)])

    async def end_again(self) -> None:
        """Record it once more, in case Redis has lost it."""
        if self.is_done:
            await self.end()

    async def leave_undone(self) -> None:
        """Release the claim, so that another node or the next run sends them."""
        if self.are_under_way:
            await self._client.run([self._call(undone=True)])
            self._digest = ""

    async def _release_dead_claim(self) -> bool:
        """Release the claim of a dead node. False if that node is alive."""
        value = await self._client.command("HGET", self._keys.crawl, f"start:{self._digest}")
        runner = (value or b"").partition(b"\n")[0].decode()
        await self._heartbeat()  # nodes beat before they claim, so a live one is in the reports now
        if not runner or runner in self._membership.reports:
            return False
        await self._client.run([scripts.claim_start(self._keys, runner, self._digest, 0, undone=True)])
        return True

    def _call(self, *, done: bool = False, undone: bool = False) -> scripts.Call[int]:
        return scripts.claim_start(self._keys, self._node_id, self._digest, self._lease_ms, done=done, undone=undone)
