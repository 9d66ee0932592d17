"""Rules on the partition's disk: kept over nodes, thrown away when damaged, and never in the crawl's way."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.gates import robots_store
from bigcrawl.scheduler.gates.robots_store import FILE, FILES_OPEN_MAX, WAITING_MAX, RulesOnDisk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AUTHORITY = "http://a.example:8000"


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[RulesOnDisk]:
    shelf = RulesOnDisk(directory)
    try:
        yield shelf
    finally:
        await shelf.close()


def rows(directory: Path, partition: int = 3) -> int:
    with closing(sqlite3.connect(directory / f"p{partition:04d}" / FILE)) as there:
        return int(there.execute("SELECT count(*) FROM rules").fetchone()[0])


def test_rules_are_there_for_the_next_node(tmp_path: Path) -> None:
    """By partition and authority, the last ones; others are unknown."""

    async def scenario() -> None:
        async with opened(tmp_path) as shelf:
            assert await shelf.get(3, AUTHORITY) == b""
            await shelf.put(3, AUTHORITY, b"1\nold")
            await shelf.put(3, AUTHORITY, b"2\nnew\x00")
            assert await shelf.get(3, AUTHORITY) == b"2\nnew\x00", "before it is written"
        async with opened(tmp_path) as shelf:
            assert await shelf.get(3, AUTHORITY) == b"2\nnew\x00"
            assert await shelf.get(4, AUTHORITY) == b""
            assert await shelf.get(3, "https://a.example:8000") == b""

    asyncio.run(scenario())


def open_shelves() -> int:
    here = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return sum(path.endswith(FILE) for path in here)


def test_what_waits_is_written_when_there_is_enough(tmp_path: Path) -> None:
    """A node that is killed loses less than a batch."""

    async def scenario() -> None:
        shelf = RulesOnDisk(tmp_path)
        for number in range(WAITING_MAX + 5):
            await shelf.put(3, f"http://{number}.example", b"1\n")
        assert rows(tmp_path) == WAITING_MAX
        await shelf.close()
        assert rows(tmp_path) == WAITING_MAX + 5

    asyncio.run(scenario())


def test_no_more_files_are_open_than_may_be(tmp_path: Path) -> None:
    """A node may own thousands of partitions."""

    async def scenario() -> None:
        async with opened(tmp_path) as shelf:
            for partition in range(WAITING_MAX):
                await shelf.put(partition, AUTHORITY, b"%d\n" % partition)
            assert 0 < open_shelves() <= FILES_OPEN_MAX
            assert [await shelf.get(partition, AUTHORITY) for partition in (0, 77)] == [b"0\n", b"77\n"]

    asyncio.run(scenario())


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_damaged_file_begins_anew(tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """It is said, and what was in it is fetched again."""

    async def scenario() -> None:
        (tmp_path / "p0003").mkdir()
        (tmp_path / "p0003" / FILE).write_bytes(damage)
        async with opened(tmp_path) as shelf:
            assert await shelf.get(3, AUTHORITY) == b""
            await shelf.put(3, AUTHORITY, b"1\nnew")
        async with opened(tmp_path) as shelf:
            assert await shelf.get(3, AUTHORITY) == b"1\nnew"

    asyncio.run(scenario())
    assert "begins anew" in caplog.text
    assert str(tmp_path / "p0003" / FILE) in caplog.text


def test_disk_that_fails_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The crawl goes on without; nothing that was there is thrown away."""

    async def scenario() -> None:
        async with opened(tmp_path) as shelf:
            await shelf.put(3, AUTHORITY, b"1\n")
        with monkeypatch.context() as patched:

            def connect(*_: object, **__: object) -> sqlite3.Connection:
                raise OSError(errno.EIO, "the disk is gone")

            patched.setattr(sqlite3, "connect", connect)
            async with opened(tmp_path) as shelf:
                for _ in range(3):
                    assert await shelf.get(3, AUTHORITY) == b""
        assert rows(tmp_path) == 1

    asyncio.run(scenario())
    assert caplog.text.count("may be fetched again") == 1


def test_rules_wait_while_another_node_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than anybody waits for it: they are written with the next ones, and those of other files at once."""
    monkeypatch.setattr(robots_store, "LOCKED_S", 0)
    monkeypatch.setattr(robots_store, "WAITING_MAX", 2)
    monkeypatch.setattr(robots_store, "KEPT_MAX", 4)

    async def scenario() -> None:
        async with opened(tmp_path) as shelf:
            await shelf.put(3, AUTHORITY, b"0\n")
        async with opened(tmp_path) as shelf:
            shelf._write_at = 2
            with closing(sqlite3.connect(tmp_path / "p0003" / FILE)) as other:
                other.execute("BEGIN EXCLUSIVE")
                await shelf.put(3, AUTHORITY, b"1\n")
                await shelf.put(4, AUTHORITY, b"1\n")
                assert await shelf.get(3, AUTHORITY) == b"1\n"
                assert rows(tmp_path, 4) == 1
                for number in range(7):
                    await shelf.put(3, f"http://{number}.example", b"1\n")
                assert len(shelf._waiting) <= 6, "what is kept has a bound"
        assert rows(tmp_path) >= 5

    asyncio.run(scenario())


def test_two_nodes_write_to_one_shelf(tmp_path: Path) -> None:
    """A partition's last owner may still be at it when the next one begins."""

    async def scenario() -> None:
        async with opened(tmp_path) as first, opened(tmp_path) as second:
            await asyncio.gather(
                *(
                    shelf.put(3, f"{name}{n}", b"1\n")
                    for name, shelf in (("a", first), ("b", second))
                    for n in range(200)
                )
            )
        assert rows(tmp_path) == 400

    asyncio.run(scenario())
