"""What others ask whether a URL is new.

Each has a process of its own: `python -m benchmarks.drum_speed.peers spec.json`.

Each is filled with random keys or fingerprints, in the way that is fastest for it, and with those of the URLs that
duplicates are drawn from; then URLs are offered as to DRUM. Making `Request`s is not timed, fingerprinting is.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from benchmarks.crawl import procfs
from benchmarks.drum_speed.confined import enter
from benchmarks.drum_speed.offered import CHUNK, Offers, keys_and_aux

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tests.support.redis_servers.redis_server import PrivateRedis

REAL_URLS: Final = 200_000
_FILL: Final = 1_000_000


class Peer(Protocol):
    """One of the others."""

    def fill(self, keys: npt.NDArray[np.uint64]) -> None:
        """Take random keys, ascending within all calls together."""

    def prepare(self, urls: list[str]) -> Any:
        """Make of URLs what `offer` takes; not timed."""

    def offer(self, prepared: Any) -> int:
        """Return how many of a chunk are new, having put them in."""

    def memory_bytes(self) -> int:
        """What it holds in memory, beyond this process."""

    def disk_bytes(self) -> int:
        """What it holds on disk."""


class _Filter:
    """A Scrapy duplicate filter."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(self, urls: list[str]) -> Any:
        from scrapy import Request

        return [Request(url) for url in urls]

    def offer(self, prepared: Any) -> int:
        seen = self.filter.request_seen
        return sum(not seen(request) for request in prepared)

    filter: Any


class ScrapySet(_Filter):
    """RFPDupeFilter with JOBDIR: a set of fingerprints in memory, and its file."""

    def __init__(self, directory: Path) -> None:
        from scrapy.dupefilters import RFPDupeFilter

        super().__init__(directory)
        self.filter = RFPDupeFilter(str(directory))

    def fill(self, keys: npt.NDArray[np.uint64]) -> None:
        for fingerprint in _fingerprints(keys):
            self.filter._fingerprints.add(fingerprint)
            self.filter.file.write(b"\x00\x14" + fingerprint)

    def memory_bytes(self) -> int:
        return 0

    def disk_bytes(self) -> int:
        self.filter.close("finished")
        return _tree_bytes(self.directory)


class ScrapyRedisSet(_Filter):
    """scrapy-redis: a Redis set of fingerprints, asked one by one."""

    def __init__(self, directory: Path) -> None:
        from scrapy_redis.dupefilter import RFPDupeFilter

        from tests.support.redis_servers.redis_server import PrivateRedis

        super().__init__(directory)
        self.redis: PrivateRedis = PrivateRedis(aof=False)
        self.redis.start()
        self.filter = RFPDupeFilter(self.redis.client, "bench:dupefilter")

    def fill(self, keys: npt.NDArray[np.uint64]) -> None:
        names = [fingerprint.hex() for fingerprint in _fingerprints(keys)]
        for start in range(0, len(names), 1000):
            self.redis.client.sadd("bench:dupefilter", *names[start : start + 1000])

    def memory_bytes(self) -> int:
        return procfs.rss_bytes(self.redis.pid)

    def disk_bytes(self) -> int:
        self.redis.close()
        return 0


class Sqlite:
    """A table of integers by key, write-ahead log, 128 MB of cache, a transaction a chunk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._base = sqlite3.connect(directory / "seen.db", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-131072"):
            self._base.execute(f"PRAGMA {pragma}")
        self._base.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY) WITHOUT ROWID")

    def fill(self, keys: npt.NDArray[np.uint64]) -> None:
        self._base.execute("BEGIN")
        signed = (keys ^ np.uint64(1 << 63)).view(np.int64)
        self._base.executemany("INSERT OR IGNORE INTO seen VALUES (?)", ((key,) for key in signed.tolist()))
        self._base.execute("COMMIT")

    def prepare(self, urls: list[str]) -> list[str]:
        return urls

    def offer(self, prepared: list[str]) -> int:
        keys = (keys_and_aux(prepared)[0] ^ np.uint64(1 << 63)).view(np.int64)
        self._base.execute("BEGIN")
        execute = self._base.execute
        new = sum(execute("INSERT OR IGNORE INTO seen VALUES (?)", (key,)).rowcount for key in keys.tolist())
        self._base.execute("COMMIT")
        return new

    def memory_bytes(self) -> int:
        return 0

    def disk_bytes(self) -> int:
        self._base.close()
        return _tree_bytes(self._directory)


class RocksDb:
    """Empty values, a Bloom filter of 10 bits; a multi-get and a write batch a chunk."""

    def __init__(self, directory: Path) -> None:
        from rocksdict import BlockBasedOptions, Cache, Options, Rdict

        options = Options(raw_mode=True)
        table = BlockBasedOptions()
        table.set_bloom_filter(10, block_based=False)
        table.set_block_cache(Cache(128 << 20))
        options.set_block_based_table_factory(table)
        self._directory = directory
        self._base: Any = Rdict(str(directory / "rocks"), options)

    def fill(self, keys: npt.NDArray[np.uint64]) -> None:
        self._put(_names(keys))

    def prepare(self, urls: list[str]) -> list[str]:
        return urls

    def offer(self, prepared: list[str]) -> int:
        names = _names(np.unique(keys_and_aux(prepared)[0]))
        new = [name for name, found in zip(names, self._base.get(names), strict=True) if found is None]
        self._put(new)
        return len(new)

    def memory_bytes(self) -> int:
        return 0

    def disk_bytes(self) -> int:
        self._base.close()
        return _tree_bytes(self._directory)

    def _put(self, names: list[bytes]) -> None:
        from rocksdict import WriteBatch

        batch = WriteBatch(raw_mode=True)
        for name in names:
            batch.put(name, b"")
        self._base.write(batch)


PEERS: Final[dict[str, type[Any]]] = {
    "Scrapy RFPDupeFilter": ScrapySet,
    "scrapy-redis": ScrapyRedisSet,
    "RocksDB": RocksDb,
    "SQLite": Sqlite,
}
IN_MEMORY: Final = frozenset({"Scrapy RFPDupeFilter", "scrapy-redis"})


def _names(keys: npt.NDArray[np.uint64]) -> list[bytes]:
    data = keys.astype(">u8").tobytes()
    return [data[at : at + 8] for at in range(0, len(data), 8)]


def _fingerprints(keys: npt.NDArray[np.uint64]) -> Iterator[bytes]:
    """As SHA-1's: 20 bytes."""
    return (name + name + name[:4] for name in _names(keys))


def _tree_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """Fill, offer; return the figures."""
    directory = Path(spec["directory"])
    peer: Peer = PEERS[spec["peer"]](directory)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    started = time.perf_counter()
    keys = int(spec["keys"])
    real = min(REAL_URLS, keys // 2)
    # Ascending, as bulk loads want them: each step draws from its own part of all keys.
    random = np.random.default_rng(1)
    steps = -(-(keys - real) // _FILL)
    for step in range(steps):
        low, high = (2**64 - 1) * step // steps, (2**64 - 1) * (step + 1) // steps
        count = min(_FILL, keys - real - step * _FILL)
        peer.fill(np.sort(random.integers(low, high, count, dtype=np.uint64)))
    offers = Offers(real, seed=2)
    for start in range(0, real, CHUNK):
        peer.offer(peer.prepare(offers.first_ones(start, min(CHUNK, real - start))))
    fill_s = time.perf_counter() - started
    wall_s = cpu_s = 0.0
    new = count = 0
    while count < spec["urls"]:
        urls = offers.chunk()
        prepared = peer.prepare(urls)
        wall, cpu = time.perf_counter(), time.process_time()
        new += peer.offer(prepared)
        wall_s += time.perf_counter() - wall
        cpu_s += time.process_time() - cpu
        count += len(urls)
    if new != offers.known - real:
        raise AssertionError(f"{new} of {count} are new; {offers.known - real} expected")
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + peer.memory_bytes()
    held = keys + new
    return {
        "held": keys,
        "urls": count,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "fill_s": fill_s,
        "rss_bytes": rss,
        "start_bytes": before,
        "disk_bytes": peer.disk_bytes(),
        "keys": held,
    }


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    enter(Path(spec["procs"]) if spec["procs"] else None, spec["core"])
    sys.stdout.write(json.dumps(measure(spec)))


if __name__ == "__main__":
    main()
