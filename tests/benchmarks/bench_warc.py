"""What storing a page costs: ``pytest -m benchmark tests/benchmarks/bench_warc.py``.

Held fixed: one page of 21 KB (the mean page of the broad crawls in the literature), seeded words and links,
one thread, files that are written but not yet synced. Asserts that what was paid for is there.
"""

from __future__ import annotations

import random
import time
import zlib
from typing import TYPE_CHECKING

import pytest
from isal import isal_zlib

from bigcrawl.warc.records import exchange_records
from bigcrawl.warc.recovery import recover, verify
from bigcrawl.warc.segments import WarcWriter
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE_BYTES = 21_000
# Enough for a second of work: shorter runs differ by a fifth from one to the next.
PAGES = 5_000
HEADERS = [
    (b"Content-Type", b"text/html; charset=utf-8"),
    (b"Date", b"Sat, 21 Nov 2026 12:00:00 GMT"),
    (b"Server", b"nginx"),
    (b"Etag", b'"5e1e-62a1b7c1"'),
    (b"Cache-Control", b"max-age=300"),
    (b"Content-Length", b"21000"),
]


def page() -> bytes:
    """Words and links of a small vocabulary: packs about as real pages do (3 to 4 times)."""
    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlucmfw", k=rng.randint(2, 9))) for _ in range(600)]
    parts = ["<!doctype html><html><body>"]
    while sum(map(len, parts)) < PAGE_BYTES:
        parts.append(f'<p class="text"><a href="/{rng.choice(words)}/index.html">{rng.choice(words)}</a> ')
        parts.append(" ".join(rng.choices(words[:200], k=12)) + "</p>\n")
    return "".join(parts).encode()[:PAGE_BYTES]


def microseconds(call: Callable[[], object], times: int = 1000) -> float:
    started = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - started) / times * 1e6


def packing(call: Callable[[], bytes]) -> str:
    return f"{microseconds(call):.1f} us to {len(call()):,} bytes"


@pytest.mark.benchmark
def test_cost_of_storing_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints microseconds a page, whole and in parts, and the cost of reading the file back."""
    body = page()
    sample = exchange(0, body, response_headers=HEADERS)
    response, request = exchange_records(sample, b"<urn:uuid:0>")
    writer = WarcWriter(tmp_path, "bench", "node")
    whole = microseconds(lambda: writer.write(sample), PAGES)
    path = writer.open_path
    assert path
    size = path.stat().st_size
    lines = [
        f"page {len(body):,} bytes, {size / PAGES:,.0f} in the file",
        f"write(): {whole:.1f} us",
        f"  serialise, digests: {microseconds(lambda: exchange_records(sample, b'<urn:uuid:0>')):.1f} us",
        "  gzip isal 2, response: " + packing(lambda: isal_zlib.compress(response, 2, 31)),
        "  gzip isal 2, request: " + packing(lambda: isal_zlib.compress(request, 2, 31)),
        "  (gzip zlib 1, response: " + packing(lambda: zlib.compress(response, 1, 31)) + ")",
        "  (gzip zlib 6, response: " + packing(lambda: zlib.compress(response, 6, 31)) + ")",
    ]
    writer.close()
    abandoned = path.with_suffix("").rename(path)
    started = time.perf_counter()
    (recovered,) = recover(tmp_path)
    lines.append(f"recover(): {size / (time.perf_counter() - started) / 1e6:.0f} MB/s of file")
    assert not abandoned.exists()
    assert recovered.kept_records == 1 + 2 * PAGES
    started = time.perf_counter()
    assert verify(recovered.path) == (recovered.kept_records, None)
    lines.append(f"verify(): {size / (time.perf_counter() - started) / 1e6:.0f} MB/s of file")
    with capsys.disabled():
        print("", *lines, sep="\n")  # the answer  # noqa: T201
