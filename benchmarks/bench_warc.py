"""What storing a page costs: ``pytest -m benchmark benchmarks/bench_warc.py``.

Held fixed: pages of 21 KB (the mean page of the broad crawls in the literature), seeded words and links, no two
alike in a row (a compressor that sees one page again and again is a quarter quicker than it is in a crawl), one
thread, files that are written but not yet synced. Times are CPU times, of the best of many short runs: a shared
machine disturbs those least. Asserts that what was paid for is there.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import time
import zlib
from collections import deque
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from isal import isal_zlib
from scrapy import Request, Spider
from scrapy.http import HtmlResponse
from scrapy.utils.test import get_crawler

from bigcrawl.page_index.index_files import index_file
from bigcrawl.pipelines.warc import WarcPipeline
from bigcrawl.warc.group_commit import GroupCommit
from bigcrawl.warc.records import exchange_records
from bigcrawl.warc.recovery import recover_directory
from bigcrawl.warc.segments import SealingOptions, WarcWriter
from bigcrawl.warc.verification import verify_file
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")

PAGE_BYTES = 21_000
KINDS = 32
RUNS, PAGES_A_RUN = 40, 100
HEADERS = [
    (b"Content-Type", b"text/html; charset=utf-8"),
    (b"Date", b"Sat, 21 Nov 2026 12:00:00 GMT"),
    (b"Server", b"nginx"),
    (b"Etag", b'"5e1e-62a1b7c1"'),
    (b"Cache-Control", b"max-age=300"),
    (b"Content-Length", b"21000"),
]
REQUEST_HEADERS = [
    (b"User-Agent", b"bench/1.0"),
    (b"Accept", b"text/html,application/xhtml+xml"),
    (b"Accept-Language", b"en"),
    (b"Accept-Encoding", b"gzip, deflate"),
]


def page(seed: int = 1) -> bytes:
    """Words and links of a small vocabulary: packs about as real pages do (3 to 4 times)."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlucmfw", k=rng.randint(2, 9))) for _ in range(600)]
    parts = ["<!doctype html><html><body>"]
    while sum(map(len, parts)) < PAGE_BYTES:
        parts.append(f'<p class="text"><a href="/{rng.choice(words)}/index.html">{rng.choice(words)}</a> ')
        parts.append(" ".join(rng.choices(words[:200], k=12)) + "</p>\n")
    return "".join(parts).encode()[:PAGE_BYTES]


def best_us(call: Callable[[T], object], samples: Sequence[T]) -> float:
    """Return the mean µs of CPU of the best of RUNS runs over the samples."""
    turn = itertools.cycle(samples)
    took = []
    for _ in range(RUNS):
        start = time.process_time_ns()
        for _ in range(PAGES_A_RUN):
            call(next(turn))
        took.append(time.process_time_ns() - start)
    return min(took) / PAGES_A_RUN / 1_000


@pytest.mark.benchmark
def test_cost_of_storing_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints microseconds a page, whole and in parts, and the cost of reading the file back."""
    samples = [exchange(n, page(n), response_headers=HEADERS, request_headers=REQUEST_HEADERS) for n in range(KINDS)]
    records = [exchange_records(sample, b"<urn:uuid:0>") for sample in samples]
    writer = WarcWriter(tmp_path, "bench", "node")
    whole = best_us(writer.write, samples)
    path = writer.open_path
    assert path
    size, pages = path.stat().st_size, RUNS * PAGES_A_RUN
    lines = [
        f"page {PAGE_BYTES:,} bytes, {size / pages:,.0f} in the file",
        f"from Scrapy's signal to the file: {best_us(*pipeline_and_pages(tmp_path / 'signal')):.1f} us",
        f"  write(): {whole:.1f} us",
        f"    serialise, digests: {best_us(lambda of: exchange_records(of, b'<urn:uuid:0>'), samples):.1f} us",
        f"    of that SHA-1, twice a body: {best_us(lambda of: sha1_twice(of.response_body), samples):.1f} us",
        f"    gzip isal 2: {best_us(lambda of: [isal_zlib.compress(record, 2, 31) for record in of], records):.1f} us",
        f"    (gzip zlib 1: {best_us(lambda of: [zlib.compress(record, 1, 31) for record in of], records):.1f} us)",
    ]
    (stored,) = (tmp_path / "signal").glob("*.warc.gz*")
    assert verify_file(stored) == (1 + 3 * pages, 0, "")
    writer.close()
    abandoned = path.with_suffix("").rename(path)
    started = time.perf_counter()
    (recovered,) = recover_directory(tmp_path)
    lines.append(f"recover(): {size / (time.perf_counter() - started) / 1e6:.0f} MB/s of file")
    assert not abandoned.exists()
    assert recovered.kept_records == 1 + 2 * pages
    started = time.perf_counter()
    assert verify_file(recovered.path) == (recovered.kept_records, 0, "")
    lines.append(f"verify(): {size / (time.perf_counter() - started) / 1e6:.0f} MB/s of file")
    began_s = time.process_time()
    indexed = index_file(recovered.path, ("cdxj",))
    lines.append(f"index_file(): {(time.process_time() - began_s) / pages * 1e6:.0f} us of CPU a page")
    assert indexed is not None
    assert indexed.pages == pages
    with capsys.disabled():
        print("", *lines, sep="\n")  # the answer  # noqa: T201


SYNC_RUN_S, SYNC_PAGES, SYNC_SECONDS = 8, 700, (0.0, 1.0, 0.1)


@pytest.mark.benchmark
def test_cost_of_syncing_pages_in_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the process' CPU a page, and how long a page waits, with and without syncs, at a steady rate."""
    samples = [exchange(n, page(n), response_headers=HEADERS, request_headers=REQUEST_HEADERS) for n in range(KINDS)]
    lines = [f"synced every {each} s: {synced(tmp_path / str(each), samples, each)}" for each in SYNC_SECONDS]
    with capsys.disabled():
        print("", *lines, sep="\n")  # the answer  # noqa: T201


def synced(directory: Path, samples: Sequence[Any], interval_s: float) -> str:
    """Write at a steady rate, as a crawl does; interval 0: nothing is synced."""
    directory.mkdir()
    commit = GroupCommit(lambda: writer.sync_function(), interval_s or None)  # noqa: PLW0108 - made below
    writer = WarcWriter(directory, "bench", "node", sealing=SealingOptions(run=commit.submit))
    waiting: deque[tuple[int, float]] = deque()
    waits: list[float] = []
    cpu_s, began_s = time.process_time(), time.monotonic()
    for number in range(SYNC_RUN_S * SYNC_PAGES):
        writer.write(samples[number % KINDS])
        commit.record_written()
        waiting.append((number, time.monotonic()))
        while waiting and waiting[0][0] < commit.safe_count:
            waits.append(time.monotonic() - waiting.popleft()[1])
        time.sleep(max(0.0, began_s + (number + 1) / SYNC_PAGES - time.monotonic()))
    cpu_s, took_s = time.process_time() - cpu_s, time.monotonic() - began_s
    commit.submit(writer.close)
    assert commit.end(60)
    cpu_us, wait_ms = cpu_s / SYNC_RUN_S / SYNC_PAGES * 1e6, sorted(waits)
    return (
        f"{cpu_us:.1f} us of CPU a page, {SYNC_RUN_S * SYNC_PAGES / took_s:.0f} pages/s, safe after "
        f"{1000 * wait_ms[len(waits) // 2]:.1f} ms, 99 % within {1000 * wait_ms[len(waits) * 99 // 100]:.1f} ms"
    )


def sha1_twice(body: bytes) -> None:
    for _ in range(2):
        hashlib.sha1(body, usedforsecurity=False).digest()


def pipeline_and_pages(directory: Path) -> tuple[Callable[[tuple[HtmlResponse, Request]], None], list[Any]]:
    """What Scrapy's signal calls, and what it hands over."""
    pipeline = WarcPipeline.from_crawler(get_crawler(Spider, {"BIGCRAWL_WARC_DIR": str(directory)}))
    pages = []
    for number in range(KINDS):
        url = f"http://site.example/dir/{number}.html"
        request = Request(url, headers=dict(REQUEST_HEADERS), meta={"download_latency": 0.01})
        address = ip_address("127.0.0.1")
        response = HtmlResponse(url, headers=HEADERS, body=page(number), ip_address=address, protocol="HTTP/1.1")
        pages.append((response, request))
    return lambda of: pipeline.response_downloaded(*of), pages
