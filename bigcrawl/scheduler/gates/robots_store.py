"""Robots rules in memory, and those for which Redis has no room in an SQLite file of each partition, which may be lost.

Memory is bounded, the least recently used are out first, and equal rules share one object. Source: IRLbot §4.3
(RobotsCache, on disk). Differs: one host is looked up at a time, when its rules are needed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections import OrderedDict, defaultdict
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.politeness.robots_policy import RobotsRules, RobotsVerdict
from bigcrawl.private_files import FILE_MODE, make_private_directory
from bigcrawl.scheduler.gates.batcher import QuestionBatcher

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.clock import Clock

logger = logging.getLogger(__name__)

FILE: Final = "robots.sqlite"
WAITING_MAX: Final = 1_024
"""How many rules are written together, about 300 KB. A kill -9 loses them if Redis has lost them too."""

KEPT_MAX: Final = 4 * WAITING_MAX
"""How many rules are kept in memory after failed writes; older ones are lost."""

CLOSING_TRIES: Final = 2

FILES_OPEN_MAX: Final = 32
LOCKED_S: Final = 2  # the partition's last owner may still be writing
_OPENING: Final = (
    "PRAGMA journal_mode = DELETE",  # a write-ahead log does not work on network file systems
    "PRAGMA synchronous = OFF",
    "CREATE TABLE IF NOT EXISTS rules (authority TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
)

RULES_BYTES_MAX: Final = 48 << 20
"""100,000 hosts that share a few files, or 20,000 with a file each."""

ENTRY_BYTES, LINE_BYTES, CHAR_BYTES = 400, 250, 4


class RulesOnDisk:
    """The files of all partitions that a node fetches from. Methods raise nothing; a thread reads and writes."""

    def __init__(self, crawl_dir: Path) -> None:
        self._crawl_dir = crawl_dir
        self._open: OrderedDict[int, sqlite3.Connection] = OrderedDict()
        self._waiting: dict[tuple[int, str], bytes] = {}
        self._turn = asyncio.Lock()
        self._asked: QuestionBatcher[tuple[int, str], bytes] = QuestionBatcher(self._read_all)
        self._is_writing = False
        self._write_at = WAITING_MAX
        self._has_complained = False

    async def get(self, partition: int, authority: str) -> bytes:
        waiting = self._waiting.get((partition, authority))
        return waiting if waiting is not None else await self._asked.ask((partition, authority))

    async def put(self, partition: int, authority: str, record: bytes) -> None:
        self._waiting[partition, authority] = record
        if len(self._waiting) >= self._write_at and not self._is_writing:
            self._is_writing = True
            try:
                await self._write_waiting()
            finally:
                self._is_writing = False

    async def close(self) -> None:
        for _ in range(CLOSING_TRIES):
            await self._write_waiting()
            if not self._waiting:
                break
        async with self._turn:
            while self._open:
                self._open.popitem()[1].close()

    async def _write_waiting(self) -> None:
        async with self._turn:
            by_partition: defaultdict[int, list[tuple[str, bytes]]] = defaultdict(list)
            for (partition, authority), record in self._waiting.items():
                by_partition[partition].append((authority, record))
            written = dict(self._waiting)
            failed = await asyncio.to_thread(self._write_records, by_partition)
            for place, record in written.items():
                if place[0] not in failed and self._waiting.get(place) is record:
                    del self._waiting[place]
            for place in list(self._waiting)[: max(0, len(self._waiting) - KEPT_MAX)]:
                del self._waiting[place]
            self._write_at = len(self._waiting) + WAITING_MAX

    async def _read_all(self, places: list[tuple[int, str]]) -> list[bytes]:
        async with self._turn:
            return await asyncio.to_thread(lambda: [self._read_record(*place) for place in places])

    def _read_record(self, partition: int, authority: str) -> bytes:
        try:
            if not self._path(partition).exists():
                return b""
            asked = self._open_database(partition).execute("SELECT record FROM rules WHERE authority = ?", (authority,))
            row = asked.fetchone()
        except (sqlite3.Error, OSError) as error:
            self._give_up(partition, error)
            return b""
        return bytes(row[0]) if row else b""

    def _write_records(self, by_partition: dict[int, list[tuple[str, bytes]]]) -> set[int]:
        failed = set()
        for partition, rows in by_partition.items():
            try:
                with self._open_database(partition) as transaction:
                    transaction.executemany("INSERT OR REPLACE INTO rules VALUES (?, ?)", rows)
            except (sqlite3.Error, OSError) as error:
                failed.add(partition)
                self._give_up(partition, error)
        return failed

    def _open_database(self, partition: int) -> sqlite3.Connection:
        connection = self._open.get(partition)
        if connection is None:
            path = self._path(partition)
            make_private_directory(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
            connection = sqlite3.connect(path, timeout=LOCKED_S, check_same_thread=False)
            self._open[partition] = connection
            for statement in _OPENING:
                connection.execute(statement)
        self._open.move_to_end(partition)
        if len(self._open) > FILES_OPEN_MAX:
            self._open.popitem(last=False)[1].close()
        return connection

    def _give_up(self, partition: int, error: Exception) -> None:
        """Continue without the file, and delete it if it is damaged."""
        connection = self._open.pop(partition, None)
        if connection is not None:
            with closing(connection):
                pass
        is_damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        if is_damaged:
            for name in (FILE, f"{FILE}-journal"):
                self._path(partition).with_name(name).unlink(missing_ok=True)
        if not self._has_complained or is_damaged:
            self._has_complained = True
            outcome = "it begins anew" if is_damaged else "robots.txt files may be fetched again"
            details = {"path": self._path(partition), "error": error, "outcome": outcome}
            logger.warning("%(path)s: %(error)s; %(outcome)s", details)

    def _path(self, partition: int) -> Path:
        return self._crawl_dir / f"p{partition:04d}" / FILE


@dataclass(frozen=True, slots=True)
class KnownRules:
    """Rules of an authority until they expire (monotonic); then they are its last good copy.

    Attributes:
        reason: rules whose reason is "unreachable" are not a copy of a file.
        attempts: fetches in a row without an answer.
        alone: the number of the last of these during which the host itself did not fail.
    """

    rules: RobotsRules
    expires_ms: int
    reason: str
    attempts: int = 0
    alone: int = 0


IGNORED: Final = KnownRules(RobotsRules.allow_all(), 1 << 62, "ignored")


class RememberedRules:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, KnownRules] = OrderedDict()
        self._size = 0
        self._users: dict[RobotsRules, tuple[RobotsRules, int]] = {}

    def __repr__(self) -> str:
        return f"<RememberedRules {len(self._known)}>"

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, authority: str) -> bool:
        return authority in self._known

    def get(self, authority: str) -> KnownRules | None:
        return self._known.get(authority)

    def unexpired_rules(self, authority: str) -> KnownRules | None:
        known = self._known.get(authority)
        if known is None or known.expires_ms <= self._clock.monotonic_ms():
            return None
        self._known.move_to_end(authority)
        return known

    def keep(self, authority: str, verdict: RobotsVerdict, attempts: int = 0, alone: int = 0) -> KnownRules:
        expires_ms = self._clock.monotonic_ms() + verdict.expires_in_ms
        known = KnownRules(self._share_equal_rules(verdict.rules), expires_ms, verdict.reason, attempts, alone)
        if before := self._known.pop(authority, None):
            self._drop_rules(before.rules)
        self._known[authority] = known
        while self._size > RULES_BYTES_MAX and len(self._known) > 1:
            self._drop_rules(self._known.popitem(last=False)[1].rules)
        return known

    def _share_equal_rules(self, rules: RobotsRules) -> RobotsRules:
        alike, users = self._users.get(rules, (rules, 0))
        self._users[alike] = alike, users + 1
        self._size += ENTRY_BYTES + (0 if users else _size_of(alike))
        return alike

    def _drop_rules(self, rules: RobotsRules) -> None:
        alike, users = self._users.pop(rules)
        if users > 1:
            self._users[alike] = alike, users - 1
        self._size -= ENTRY_BYTES + (0 if users > 1 else _size_of(alike))


def _size_of(rules: RobotsRules) -> int:
    return LINE_BYTES * len(rules.lines) + CHAR_BYTES * rules.chars
