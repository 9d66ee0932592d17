"""`python -m benchmarks.drum_speed --keys 1e7,1e8,1e9 --peers`: URLs/s from string to verdict in a large set.

Promised of DRUM: at least 1 M URLs/s on one core, within 20 % of that of the smallest set in all others, and at most
256 MB of resident memory, while memory and page cache together are held to 1 GiB. The peers are asked the same of
smaller sets: see `--peer-keys`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.crawl import procfs
from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.report import aligned, say
from benchmarks.drum_speed.confined import bounded, run_module
from benchmarks.drum_speed.peers import IN_MEMORY, PEERS

URLS_A_SECOND_MIN: Final = 1e6
SLOWDOWN_MAX: Final = 0.20
RSS_BYTES_MAX: Final = 256e6
MEMORY_LIMIT: Final = 1 << 30

# Fingerprinted and asked one by one they take 25 to 100 us each; the others are given as many as fill their caches.
PEER_URLS: Final = {"Scrapy RFPDupeFilter": 300_000, "scrapy-redis": 200_000, "RocksDB": 3_000_000, "SQLite": 1_000_000}

_HEADS: Final = ("side", "keys", "URLs/s", "CPU us/URL", "RSS MB", "disk B/key", "URLs", "filled in s")


def main() -> int:
    """Measure, print the table, write it; 1 when a promise is not kept, with --hold."""
    options = _parser().parse_args()
    procfs.keep_to(procfs.ORIGIN_CORE)
    rows: list[dict[str, Any]] = []
    with bounded(MEMORY_LIMIT) as procs:
        if procs is None:
            say("! no cgroup can be made here: memory and page cache are not bounded")
        for keys in options.keys:
            spec = {"keys": keys, "urls": options.urls, "memory_bytes": options.memory_mb << 20}
            rows.append(_measured("bigcrawl DRUM", "ours", spec, options.directory, procs))
        if options.peers:
            for peer in PEERS:
                sizes = options.small_keys if peer in IN_MEMORY else options.peer_keys
                spec = {"peer": peer, "keys": sizes, "urls": PEER_URLS[peer]}
                bound = None if peer in IN_MEMORY else procs
                rows.append(_measured(peer, "peers", spec, options.directory, bound))
    say(*aligned([_HEADS, *(_cells(row) for row in rows)]))
    missed = missed_promises([row for row in rows if row["side"] == "bigcrawl DRUM"])
    say(*(f"! {text}" for text in missed))
    options.json.write_text(
        json.dumps({"machine": describe_machine(), "rows": rows, "missed": missed}, indent=1) + "\n"
    )
    say(f"written: {options.json}")
    return 1 if missed and options.hold else 0


def _measured(side: str, module: str, spec: dict[str, Any], below: Path | None, procs: Path | None) -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-bench-", dir=below))
    try:
        told = {**spec, "directory": str(directory / "set"), "procs": str(procs or ""), "core": procfs.CRAWLER_CORE}
        (directory / "set").mkdir()
        (directory / "spec.json").write_text(json.dumps(told))
        row = json.loads(run_module(f"benchmarks.drum_speed.{module}", [str(directory / "spec.json")]))
    finally:
        shutil.rmtree(directory)
    row["side"] = side
    say("  ".join(_cells(row)))
    return dict(row)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["side"],
        f"{row['held']:.0e}".replace("e+0", "e"),
        f"{row['urls'] / row['wall_s']:,.0f}",
        f"{row['cpu_s'] / row['urls'] * 1e6:.2f}",
        f"{row['rss_bytes'] / 1e6:,.0f}",
        f"{row['disk_bytes'] / row['keys']:.1f}",
        f"{row['urls']:,}",
        f"{row['fill_s']:,.0f}",
    )


def missed_promises(rows: list[dict[str, Any]]) -> list[str]:
    """What DRUM's rows, smallest set first, do not keep of what is promised."""
    missed = []
    rates = [row["urls"] / row["wall_s"] for row in rows]
    for row, rate in zip(rows, rates, strict=True):
        if rate < URLS_A_SECOND_MIN:
            missed.append(f"{row['held']:,} keys: {rate:,.0f} URLs/s, not {URLS_A_SECOND_MIN:,.0f}")
        if rate < (1 - SLOWDOWN_MAX) * rates[0]:
            missed.append(f"{row['held']:,} keys: {rate / rates[0]:.0%} of the rate at {rows[0]['held']:,}")
        if row["rss_bytes"] > RSS_BYTES_MAX:
            missed.append(f"{row['held']:,} keys: {row['rss_bytes'] / 1e6:.0f} MB, not {RSS_BYTES_MAX / 1e6:.0f}")
    return missed


def _counts(text: str) -> list[int]:
    return sorted(int(float(part)) for part in text.split(","))


def _count(text: str) -> int:
    return int(float(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drum_speed", description=__doc__)
    add = parser.add_argument
    add("--keys", type=_counts, default=[10**7, 10**8, 10**9], help="sizes of DRUM's set; default 1e7,1e8,1e9")
    add("--urls", type=_count, default=120_000_000, help="offered at each size; default 1.2e8, which one merge takes")
    add("--memory-mb", type=int, default=96, help="DRUM's memory_bytes; default 96")
    add("--peers", action="store_true", help="the others too")
    add("--small-keys", type=_count, default=10**7, help="size of the sets held in memory; default 1e7")
    add("--peer-keys", type=_count, default=10**8, help="size of RocksDB's and SQLite's; default 1e8")
    add("--directory", type=Path, metavar="DIR", help="where to work: 25 GB are used at 1e9; default: a temporary one")
    add("--hold", action="store_true", help="exit 1 when a promise is not kept")
    add("--json", type=Path, default=Path("bench-drum-speed.json"), metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
