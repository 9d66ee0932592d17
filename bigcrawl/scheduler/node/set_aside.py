"""Moves taken URLs back to disk, through their inbox, if the blacklist covers them or the spider cannot run them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import sort_replies
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.member import order_of
from bigcrawl.scheduler.records.queued_url import UNCHECKED, UNRUNNABLE, QueuedUrl, encode_batch
from bigcrawl.scheduler.rules.blacklist import NOTHING

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.ownership import Ownership
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.held_urls import HeldUrls
    from bigcrawl.scheduler.rules.blacklist import Blacklist

logger = logging.getLogger(__name__)

REASONS_SAID_MAX = 32


class Aside:
    def __init__(self, client: RedisClient, held: HeldUrls, ownership: Ownership, connections: int) -> None:
        self._client = client
        self._held = held
        self._ownership = ownership
        self._connections = connections
        self._waiting: list[tuple[HeldUrl, QueuedUrl]] = []
        self._said: set[str] = set()
        self.blacklist: Blacklist = NOTHING

    def __repr__(self) -> str:
        return f"<Aside {self.blacklist!r} waiting={len(self._waiting)}>"

    def covers(self, held: HeldUrl) -> bool:
        """Return whether the blacklist covers a held URL: its host, the URL itself, or its known address."""
        blacklist = self.blacklist
        if held.address and blacklist.of_address(held.address):
            return True
        return blacklist.of_url(held.host, held.fields.body) is not None

    def refuses_address(self, address: str) -> bool:
        return self.blacklist.of_address(address) is not None

    def set_aside(self, held: HeldUrl) -> None:
        if held.stage in (Stage.STARTED, Stage.ENDED):
            return
        held.go_to(Stage.ENDED)
        fields = held.fields
        by_address = self.blacklist.of_url(held.host, fields.body) is None
        flags = self.blacklist.with_mark(fields.flags, by_address=by_address) | UNCHECKED
        self._waiting.append((held, QueuedUrl(fields.key, held.host, fields.priority, flags, fields.body)))

    def put_unrunnable(self, held: HeldUrl, why: str) -> None:
        """Set a URL aside until a spider can run it. Its host must not have been asked for anything."""
        held.go_to(Stage.ENDED)
        fields = held.fields
        flags = self.blacklist.with_mark(fields.flags, by_address=False) | UNCHECKED | UNRUNNABLE
        body = fields.body or held.member
        self._waiting.append((held, QueuedUrl(fields.key, held.host, fields.priority, flags, body)))
        if why not in self._said and len(self._said) < REASONS_SAID_MAX:
            self._said.add(why)
            logger.error(
                "%(url)s waits on disk: %(why)s (logged once; later ones are counted as unrunnable)",
                {"url": held.url or f"a URL of {held.host}", "why": why},
            )

    def obey(self, blacklist: Blacklist) -> None:
        """Use this blacklist from now on, and set aside the held URLs that it covers."""
        self.blacklist = blacklist
        for held in self._held if len(self.blacklist) else ():
            if held.stage in (Stage.WAITING, Stage.BUFFERED) and not held.refusal and self.covers(held):
                self.set_aside(held)

    async def flush(self) -> bool:
        """Move the URLs that were set aside, in Redis. Return whether there were any."""
        if not self._waiting:
            return False
        by_partition: dict[OwnedPartition, list[tuple[HeldUrl, QueuedUrl]]] = {}
        for row in self._waiting:
            owned = self._ownership.owned.get(row[0].partition)
            if owned is not None and self._held.drop(row[0]):
                by_partition.setdefault(owned, []).append(row)
        self._waiting = []
        calls = [self._call(owned, rows) for owned, rows in by_partition.items()]
        replies = sort_replies(by_partition, await self._client.run_each(calls))
        for owned in replies.lost:
            self._ownership.table.remove_lost(owned)
        for owned, entries in replies.done:
            _record_moved(owned, [held for held, _ in by_partition[owned]], entries, self._client.running_ms)
        if replies.failed is not None:
            raise TransientStoreError(f"blacklisted URLs could not be moved to disk: {replies.failed}")
        return True

    def _call(self, owned: OwnedPartition, rows: list[tuple[HeldUrl, QueuedUrl]]) -> scripts.Call[list[str]]:
        urls = [(held.seq, encode_batch([url])) for held, url in rows]
        return scripts.set_aside_urls(owned.keys, owned.identity, self._connections, urls)


def _record_moved(owned: OwnedPartition, moved: list[HeldUrl], entries: list[str], running_ms: int) -> None:
    owned.inbox.record_urls()
    owned.record_due_by(min(held.due_ms for held in moved))
    for held, entry_id in zip(moved, entries, strict=True):
        owned.hot.record_ended(held.host)
        if entry_id:
            owned.moved.record_move(entry_id, held.host, [order_of(held.fields.priority, held.seq)], running_ms)
