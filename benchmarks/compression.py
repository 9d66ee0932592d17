"""`make bench-compression`: CPU and bytes of a WARC record by each way to compress it, on pages of the simulated web.

The ways besides isal's, in which WARC files are written, are zlib, zstd (`backports.zstd`), and zlib-ng if it is there.
Best of five passes over 1,000 pages, each a record of its own. Takes a quarter of a minute.
"""

from __future__ import annotations

import importlib
import time
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from isal import isal_zlib

from benchmarks.crawl.report import aligned, say
from bigcrawl_simweb.model.uniform import UniformWeb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGES: Final = 1_000
PASSES: Final = 5
_GZIP: Final = 31  # wbits: with gzip's header
_HEADS: Final = ("way", "us a page", "bytes a page", "of the page")


def main() -> None:
    web = UniformWeb(7, PAGES)
    records = [record(web, url) for url in web.seeds(80)]
    rows = [row(name, compress, records) for name, compress in ways()]
    say(*aligned([_HEADS, *rows]))


def record(web: UniformWeb, url: str) -> bytes:
    parts = urlsplit(url)
    assert parts.hostname is not None
    answer = web.answer(parts.hostname, parts.path, 80)
    return (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".encode()
        + answer.body
    )


def ways() -> Iterator[tuple[str, Callable[[bytes], bytes]]]:
    for level in (0, 1, 2, 3):
        yield (
            f"isal {level}{', as WARC files are' * (level == 2)}",
            partial(isal_zlib.compress, level=level, wbits=_GZIP),
        )
    for level in (1, 6):
        yield f"zlib {level}", partial(zlib.compress, level=level, wbits=_GZIP)
    zlib_ng: Any = _import("zlib_ng.zlib_ng")
    for level in (1, 2, 6) if zlib_ng else ():
        yield f"zlib-ng {level}", partial(zlib_ng.compress, level=level, wbits=_GZIP)
    zstd: Any = _import("compression.zstd") or _import("backports.zstd")
    for level in (-5, 1, 3, 9) if zstd else ():
        whole = zstd.ZstdCompressor(level=level)
        yield f"zstd {level}", partial(whole.compress, mode=whole.FLUSH_FRAME)


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def row(name: str, compress: Callable[[bytes], bytes], records: Sequence[bytes]) -> tuple[str, ...]:
    best = float("inf")
    for _ in range(PASSES):
        begun = time.process_time()
        size = sum(len(compress(each)) for each in records)
        best = min(best, time.process_time() - begun)
    return name, f"{1e6 * best / PAGES:.1f}", f"{size / PAGES:,.0f}", f"{size / sum(map(len, records)):.1%}"


if __name__ == "__main__":
    main()
