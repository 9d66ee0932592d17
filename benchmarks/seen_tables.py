"""`python -m benchmarks.seen_tables`: a crawl whose URL-seen tables are runs, RocksDB or SQLite (decision 0212).

Each table stands where a partition has its `seen`; everything else is the same crawl of the same simulated web, at full
speed, with that many keys seen before it begins. RocksDB and SQLite write when a step adopts its result, outside the
manifest: what a crash would need beside that is not measured. One core for the crawler and all its threads; web
server and Redis have the other.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from benchmarks.crawl import procfs
from benchmarks.crawl.origin import LogCounter, Origin
from benchmarks.crawl.procfs import ORIGIN_CORE
from benchmarks.crawl.report import aligned, say
from benchmarks.drum_speed.peers import RocksDb
from benchmarks.merges.__main__ import STOP_S, PinnedCrawl
from benchmarks.merges.prefill import prefill, run_sizes
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, CheckResult
from bigcrawl.drum.record_merge import FAN_IN
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl_simweb.serve.access_log import read_log
from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from bigcrawl.drum.format import KeyArray

WARM_UP_PAGES: Final = 1_000
_WARM_UP_S_MAX: Final = 120
STORES: Final = ("runs", "rocksdb", "sqlite")
HEADS: Final = ("table", "keys", "pages", "CPU ms/page", "checked", "us/URL", "written MB", "RSS MB", "disk MB")


class Table:
    """What a step asks of `seen`, of a store that has its own files."""

    state = EMPTY_BUCKET

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._count = path / "count"
        self._size = int(self._count.read_text()) if self._count.exists() else 0

    def __len__(self) -> int:
        return self._size

    def fork(self) -> Self:
        return self

    def check_update(self, keys: KeyArray) -> CheckResult:
        distinct, places = np.unique(keys, return_index=True)
        unseen = ~self.find(distinct)
        new = np.zeros(len(keys), dtype=np.bool_)
        new[places[unseen]] = True
        return CheckResult(new, distinct[unseen], EMPTY_BUCKET, (), ())

    def commit(self, result: CheckResult) -> None:
        if len(result.added):
            self.add(result.added)
            self._size += len(result.added)

    def fill(self, keys: KeyArray) -> None:
        self.add(keys)
        self._size += len(keys)
        self._count.write_text(str(self._size))

    def verify(self) -> list[Exception]:
        return []

    def _check(self) -> None:
        """Say nothing."""

    find: Callable[[KeyArray], Any]
    add: Callable[[KeyArray], None]


class RocksTable(Table):
    """Log unsynced at a step, as the manifest is; a Bloom filter and a cache a table, as `drum_speed` has them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._base = RocksDb(path)

    def find(self, keys: KeyArray) -> Any:
        found = self._base._base.get(_names(keys))
        return np.fromiter((value is not None for value in found), dtype=np.bool_, count=len(keys))

    def add(self, keys: KeyArray) -> None:
        self._base._put(_names(keys))

    def close(self) -> None:
        self._base._base.close()


class SqliteTable(Table):
    """A write-ahead log that is synced at its checkpoints; a transaction a step, 16 MB of cache."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._base = sqlite3.connect(path / "seen.db", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-16384"):
            self._base.execute(f"PRAGMA {pragma}")
        self._base.execute("CREATE TABLE IF NOT EXISTS seen (key INTEGER PRIMARY KEY) WITHOUT ROWID")

    def find(self, keys: KeyArray) -> Any:
        execute = self._base.execute
        found = (execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone() is not None for key in _signed(keys))
        return np.fromiter(found, dtype=np.bool_, count=len(keys))

    def add(self, keys: KeyArray) -> None:
        self._base.execute("BEGIN")
        self._base.executemany("INSERT INTO seen VALUES (?)", ((key,) for key in _signed(keys)))
        self._base.execute("COMMIT")

    def close(self) -> None:
        self._base.close()


TABLES: Final[dict[str, type[Any]]] = {"rocksdb": RocksTable, "sqlite": SqliteTable}


def _names(keys: KeyArray) -> list[bytes]:
    data = keys.astype(">u8").tobytes()
    return [data[at : at + 8] for at in range(0, len(data), 8)]


def _signed(keys: KeyArray) -> list[int]:
    return (keys ^ np.uint64(1 << 63)).view(np.int64).tolist()


class SeenTables:
    """The extension of the measured crawl: puts tables in their place, and counts the time of their thread."""

    def __init__(self, store: str, path: Path) -> None:
        self._path = path
        self.urls, self.cpu_ns = 0, 0
        restore = Tables.restore.__func__  # type: ignore[attr-defined]
        opened: dict[Path, Any] = {}

        def replaced(cls: type[Tables], epoch: Any, states: Any) -> Tables:
            tables: Tables = restore(cls, epoch, states)
            if store in TABLES:
                own = table_path(epoch.path.parent)
                opened[own] = tables.seen = tables._all["seen"] = opened.get(own) or TABLES[store](own)
            return tables

        Tables.restore = classmethod(replaced)  # type: ignore[assignment, method-assign]
        owner = TABLES.get(store, Bucket)
        check_update, commit = owner.check_update, owner.commit

        def timed_check(table: Any, keys: KeyArray) -> CheckResult:
            before = time.thread_time_ns()
            result: CheckResult = check_update(table, keys)
            if store in TABLES or table._kind.prefix == "run":
                self.cpu_ns += time.thread_time_ns() - before
                self.urls += len(keys)
            return result

        def timed_commit(table: Any, result: Any) -> None:
            before = time.thread_time_ns()
            commit(table, result)
            if store in TABLES or table._kind.prefix == "run":
                self.cpu_ns += time.thread_time_ns() - before
                self._path.write_text(json.dumps([self.urls, self.cpu_ns]))

        owner.check_update, owner.commit = timed_check, timed_commit

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["BENCH_SEEN"], Path(crawler.settings["BENCH_SEEN_COUNTS"]))


def table_path(partition: Path) -> Path:
    return partition.parents[1] / "seen" / partition.name


def main() -> int:
    """Print a row for each store and size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seen_tables", description=__doc__)
    add = parser.add_argument
    add("--keys", type=float, nargs="+", default=[1e6, 1e7], help="seen before the crawl; default 1e6 1e7")
    add("--stores", nargs="+", choices=STORES, default=STORES)
    add("--partitions", type=int, default=8)
    add("--seconds", type=float, default=45, help="measured of each crawl, after its first pages; default 45")
    options = parser.parse_args()
    procfs.keep_to(ORIGIN_CORE)
    rows: list[tuple[str, ...]] = [HEADS]
    for keys in options.keys:
        for store in options.stores:
            with tempfile.TemporaryDirectory(prefix="bigcrawl-seen-") as directory:
                rows.append(_measured(store, int(keys), Path(directory), options))
            say("  ".join(rows[-1]))
    say("", *aligned(rows))
    return 0


def _measured(store: str, keys: int, directory: Path, options: argparse.Namespace) -> tuple[str, ...]:
    state = directory / "state" / Crawl.name
    _fill(store, keys, state, options.partitions)
    with ExitStack() as stack:
        origin = stack.enter_context(Origin(directory / "origin", hosts=1_000, core=ORIGIN_CORE))
        redis = stack.enter_context(PrivateRedis())
        procfs.pin(redis.pid, ORIGIN_CORE)
        settings = {
            "BIGCRAWL_STATE_DIR": directory / "state",
            "BIGCRAWL_REDIS_URL": redis.url,
            "BIGCRAWL_PARTITIONS": options.partitions,
            "BIGCRAWL_HOST_DELAY": 0,
            "BIGCRAWL_SERVER_DELAY": 0,
            "BIGCRAWL_LEASE_SECONDS": 10,  # hosts rest for it before the first page
            "BIGCRAWL_STANDSTILL_SECONDS": 8,
            "CONCURRENT_REQUESTS": 64,
            "TELNETCONSOLE_ENABLED": 0,
            "EXTENSIONS": json.dumps({"benchmarks.seen_tables.SeenTables": 0}),
            "BENCH_SEEN": store,
            "BENCH_SEEN_COUNTS": directory / "counts.json",
        }
        seeds = origin.seeds_file.read_text().split()
        crawl = stack.enter_context(PinnedCrawl(directory / "crawl", seeds, settings))
        process = crawl.start()
        _wait_for_pages(directory / "origin" / "access.log")
        began_ms, began_cpu_s = time.time_ns() // 1_000_000, procfs.cpu_seconds(process.pid)
        try:
            process.wait(options.seconds)
        except subprocess.TimeoutExpired:
            proc = Path("/proc", str(process.pid))
            cpu_s, ended_ms = procfs.cpu_seconds(process.pid) - began_cpu_s, time.time_ns() // 1_000_000
            peak = next(line for line in (proc / "status").read_text().splitlines() if line.startswith("VmHWM"))
            wrote = next(line for line in (proc / "io").read_text().splitlines() if line.startswith("write_bytes"))
            crawl.terminate()
            process.wait(STOP_S)
        else:
            raise RuntimeError(f"the crawl ended by itself with status {process.returncode}")
        lines = read_log(directory / "origin" / "access.log")
    pages = sum(
        line.status == 200 and line.target != "/robots.txt" and began_ms <= line.end_ms < ended_ms for line in lines
    )
    urls, cpu_ns = json.loads((directory / "counts.json").read_text())
    disk = sum(path.stat().st_size for path in _files(store, state))
    return (
        store,
        f"{keys:,}",
        f"{pages:,}",
        f"{1000 * cpu_s / pages:.3f}",
        f"{urls:,}",
        f"{cpu_ns / urls / 1000:.2f}",
        f"{int(wrote.split()[1]) / 1e6:.0f}",
        f"{int(peak.split()[1]) / 1e3:.0f}",
        f"{disk / 1e6:.1f}",
    )


def _wait_for_pages(log: Path) -> None:
    """Return when the crawl has begun: hosts rest first, because the partitions had an owner whose end nobody saw."""
    counter, began_s = LogCounter(log), time.monotonic()
    while counter.read().pages < WARM_UP_PAGES:
        if time.monotonic() - began_s > _WARM_UP_S_MAX:
            raise RuntimeError(f"fewer than {WARM_UP_PAGES} pages in {_WARM_UP_S_MAX} s")
        time.sleep(0.2)
    counter.close()


def _fill(store: str, keys: int, state: Path, partitions: int) -> None:
    for number in range(partitions):
        partition = state / f"p{number:04d}"
        # One run of each tier, where a crawl has none to three.
        prefill(partition, run_sizes(3 * keys // partitions, FAN_IN)[:: FAN_IN - 1], number)
        if store in TABLES:
            # The runs stay, so that all crawls begin with the same directory; a table is filled in their place.
            runs = sorted((partition / "e1").glob("run-*"))
            table = TABLES[store](table_path(partition))
            for path in runs:
                for start in range(0, len(drawn := _keys_of(path)), 1_000_000):
                    table.fill(drawn[start : start + 1_000_000])
            table.close()


def _keys_of(path: Path) -> KeyArray:
    from bigcrawl.drum.files import DiskFiles
    from bigcrawl.drum.format import TRAILER_BYTES, decode_trailer
    from bigcrawl.drum.run import RunInfo, RunReader

    data = path.read_bytes()
    layout, _ = decode_trailer(str(path), data[-TRAILER_BYTES:], len(data))
    info = RunInfo(path.name, layout.keys, layout.first, layout.last, len(data))
    return np.concatenate([keys for keys, _ in RunReader(DiskFiles(), path.parent, info).spans()])


def _files(store: str, state: Path) -> list[Path]:
    root = state.parent / "seen" if store in TABLES else state
    return [path for path in root.rglob("*" if store in TABLES else "run-*") if path.is_file()]


if __name__ == "__main__":
    sys.exit(main())
