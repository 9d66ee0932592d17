"""`python -m benchmarks.takeover`: how long another node takes to take over all partitions of a large crawl. --help.

A crawl is made on disk, in the formats of the product, and a node owns all of it. The node is stopped (SIGSTOP), so
that nothing proves its death, as if its machine was gone, and another node is started. Its partitions are free when
their leases have run out. What comes after that is measured: until all are claimed and opened, and until the first
page.

Twice: both nodes work in one directory; and the second one has an empty directory, and gets all from a store in another
directory of the same disk (file://). Nodes and Redis are real; a fetch takes no time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.backlog.__main__ import CRAWL, fill_all
from benchmarks.backlog.state import PARTITIONS
from benchmarks.crawl import procfs
from benchmarks.crawl.report import aligned, say
from bigcrawl.redisdb.keys import partition_keys
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

SILENT_S_MAX: Final = 1_800.0
_HEADS: Final = ("second node", "owns all after the lease", "first page after", "its CPU", "promised")


class Taken(NamedTuple):
    """When the second node owned all, and had fetched, in seconds after the last lease; its CPU seconds until then."""

    owned_s: float
    fetched_s: float
    cpu_s: float


def main() -> None:
    """Fill, measure, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seen", type=float, default=1e8, help="URLs seen before the crawl begins; default 1e8")
    parser.add_argument("--waiting", type=float, default=5e6, help="URLs that wait then; default 5e6")
    parser.add_argument("--lease", type=float, default=30, help="BIGCRAWL_LEASE_SECONDS; default 30")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the crawl stays; one that is there is used")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bigcrawl-takeover-", dir=options.keep) as directory:
        made = (options.keep or Path(directory)) / "made"
        if not made.exists():
            fill_all(made, int(options.seen), int(options.waiting))
            say(f"{options.seen:.3g} seen, {options.waiting:.3g} waiting")
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        say(f"{size / 1e9:.2f} GB in {PARTITIONS} partitions")
        rows = []
        for name, has_store, promised_s in (("same directory", False, 10), ("empty, and a store", True, 60)):
            taken = _measured(made, Path(directory) / name, options.lease, has_store=has_store)
            rows.append((name, *(f"{value:.1f} s" for value in taken), f"{promised_s} s"))
    say(*aligned([_HEADS, *rows]))


def _measured(made: Path, place: Path, lease_s: float, *, has_store: bool) -> Taken:
    # No owner writes to files that it takes over, so that links will do for a copy.
    shutil.copytree(made, place / "first" / CRAWL, copy_function=os.link)
    with PrivateRedis() as redis:
        settings = {"BIGCRAWL_REDIS_URL": redis.url, "BIGCRAWL_LEASE_SECONDS": lease_s}
        if has_store:
            settings["BIGCRAWL_STORE_URL"] = f"file://{place}/store"
        with _node(settings, place / "first", "first") as first:
            _time_of(first, "owned", "fetched")
            first.send_signal(signal.SIGSTOP)
            over_s = _end_of_leases(redis)
            with _node(settings, place / ("second" if has_store else "first"), "second") as second:
                owned_s, fetched_s = _time_of(second, "owned", "fetched")
                cpu_s = procfs.cpu_seconds(second.pid)
    shutil.rmtree(place)
    return Taken(owned_s - over_s, fetched_s - over_s, cpu_s)


@contextmanager
def _node(settings: dict[str, Any], directory: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    own = {**settings, "BIGCRAWL_STATE_DIR": str(directory), "BIGCRAWL_NODE": name}
    words = (sys.executable, "-m", "benchmarks.takeover.node", json.dumps(own))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        stuck = threading.Timer(SILENT_S_MAX, process.kill)
        stuck.start()
        try:
            yield process
        finally:
            stuck.cancel()
            process.kill()


def _time_of(process: subprocess.Popen[str], *events: str) -> list[float]:
    """Wait until a node has told of all these events; when they were."""
    assert process.stdout is not None
    told: dict[str, float] = {}
    while not set(events) <= set(told):
        words = process.stdout.readline().split()
        if not words:
            raise SystemExit(f"a node ended with status {process.wait()}")
        told[words[0]] = float(words[1])
    return [told[event] for event in events]


def _end_of_leases(redis: PrivateRedis) -> float:
    """When the last lease of any partition runs out, by the machine's monotonic clock."""
    now_s = time.monotonic()
    seconds, micros = redis.client.time()
    keys = [partition_keys(CRAWL, number) for number in range(PARTITIONS)]
    ends_ms = [int(redis.client.hget(each.owner, "lease_ms") or 0) for each in keys]
    blocks = {each.leases for each in keys}
    ends_ms += [int(lease.split()[0]) for block in blocks for lease in redis.client.hvals(block)]
    return now_s + max(ends_ms) / 1000 - seconds - micros / 1e6


if __name__ == "__main__":
    main()
