"""Two nodes with one Redis: a copy of what the other has on its medium is a reference, and nothing waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.clock import ManualClock
from bigcrawl.pipelines.origin_sharing import OriginSharing
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.warc.group_commit import GroupCommit
from bigcrawl.warc.segments import SealingOptions, WarcWriter
from bigcrawl.warc.shared_origins import SharedOrigins
from tests.support.running.processes import wait_until
from tests.support.sha1_collision import FIRST, SECOND
from tests.unit.scheduler.world import connected
from tests.unit.warc.medium import Medium
from tests.unit.warc.reading import exchange, read_checked

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient

BODY = b"<p>of some length</p>" * 30


class StoringNode:
    """A node's writer, group commit and sharing, as the pipeline ties them."""

    def __init__(self, directory: Path, name: str, crawl: str, remembered: int = 100) -> None:
        directory.mkdir()
        self.directory = directory
        self._name, self._crawl = name, crawl
        self.medium = Medium()
        self.origins = SharedOrigins(remembered)
        self.commit = GroupCommit(lambda: self.writer.sync_function(), 0.0, ManualClock(1_700_000_000_000))  # noqa: PLW0108 - made below
        sealing = SealingOptions(run=self.commit.submit)
        self.writer = WarcWriter(directory, "c", name, files=self.medium, sealing=sealing, origins=self.origins)
        self.sharing = OriginSharing(self.origins, self.commit)

    def write(self, number: int, body: bytes = BODY) -> bytes:
        """Write a page; the id of the record that it refers to, or b""."""
        written = self.writer.write(exchange(number, body, record_id=b"<urn:uuid:%d>" % number))
        self.commit.record_written()
        return written.origin.record_id if written.origin else b""

    def wait_for_sync(self) -> None:
        wait_until(lambda: self.commit.safe_count == self.commit.written, "the disk keeps up")

    async def exchange(self, client: RedisClient) -> None:
        await self.sharing.exchange(client, self._crawl, self._name)

    async def report(self, client: RedisClient) -> None:
        """Report all that is on the medium: taken up in one turn, sent in the next."""
        for _ in range(2):
            self.wait_for_sync()
            await self.exchange(client)

    def end(self) -> None:
        self.medium.may_sync.set()
        self.commit.submit(self.writer.close)
        assert self.commit.end(60)


def test_copy_of_what_another_node_stored_is_discarded(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its record refers to the other node's; bodies that share a SHA-1 do not."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            one, other = (StoringNode(tmp_path / name, name, crawl_name) for name in "ab")
            await other.exchange(client)
            one.write(1)
            one.write(2, FIRST)
            await one.report(client)
            await other.exchange(client)
            assert other.write(3) == b"<urn:uuid:1>"
            assert other.write(4, SECOND) == b""
            assert other.write(5, FIRST) == b"<urn:uuid:2>"
            await one.exchange(client)
            assert one.sharing.learned == 0, "a node learns nothing from itself"
            for node in (one, other):
                node.end()
            kinds = [record.type for path in other.directory.glob("*.gz") for record in read_checked(path)]
            assert kinds.count("revisit") == 2
            assert kinds.count("response") == 1

    asyncio.run(scenario())


def test_what_was_reported_before_a_process_began_is_not_used(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The file may have been compacted, archived or lost between two runs."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            one = StoringNode(tmp_path / "a", "a", crawl_name)
            one.write(1)
            await one.report(client)
            await asyncio.sleep(0.01)  # names of entries are times in ms
            later = StoringNode(tmp_path / "b", "b", crawl_name)
            await later.exchange(client)
            assert later.write(2) == b""
            for node in (one, later):
                node.end()

    asyncio.run(scenario())


def test_nothing_is_reported_before_it_is_on_the_medium(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    async def scenario() -> None:
        async with connected(redis_url) as client:
            one, other = (StoringNode(tmp_path / name, name, crawl_name) for name in "ab")
            await other.exchange(client)
            one.medium.may_sync.clear()
            one.write(1)
            for _ in range(3):
                await one.exchange(client)
            assert await client.command("XLEN", CrawlKeys(crawl_name).origins) == 0
            one.medium.may_sync.set()
            await one.report(client)
            await other.exchange(client)
            assert other.write(2) == b"<urn:uuid:1>"
            for node in (one, other):
                node.end()

    asyncio.run(scenario())


def test_what_is_given_up_before_its_sync_is_not_reported(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It is written again with its old id, and reported when it is on the medium."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            one, other = (StoringNode(tmp_path / name, name, crawl_name) for name in "ab")
            await other.exchange(client)
            one.write(1)
            await one.exchange(client)
            one.writer.give_up_file()
            for _ in range(3):
                await one.exchange(client)
            assert await client.command("XLEN", CrawlKeys(crawl_name).origins) == 0
            one.write(1)
            await one.report(client)
            await other.exchange(client)
            assert other.write(2) == b"<urn:uuid:1>"
            for node in (one, other):
                node.end()

    asyncio.run(scenario())


def test_a_stream_with_other_entries_is_read_past_them(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    async def scenario() -> None:
        async with connected(redis_url) as client:
            one, other = (StoringNode(tmp_path / name, name, crawl_name, remembered=1) for name in "ab")
            await other.exchange(client)
            await client.command("XADD", CrawlKeys(crawl_name).origins, "*", "o", b"\xc1" * 40)
            one.write(1)
            one.write(2, BODY + b".")
            await one.report(client)
            await other.exchange(client)
            assert other.sharing.learned == 2
            assert other.write(3) == b"", "only the last is remembered"
            assert other.write(4, BODY + b".") == b"<urn:uuid:2>"
            for node in (one, other):
                node.end()

    asyncio.run(scenario())
