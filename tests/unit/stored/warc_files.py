"""WARC files with pages of a test's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.page_index.index_files import index_file
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.records import Exchange, new_record_id
from bigcrawl.warc.segments import WarcWriter

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 1_700_000_000_000  # 20231114221320


def page(url: str, body: bytes = b"<p>a page</p>", at_s: int = 0, **changes: Any) -> Exchange:
    """The exchange of a page that was fetched so many seconds after `DAY_MS`."""
    values: dict[str, Any] = {
        "url": url,
        "method": "GET",
        "request_headers": [(b"User-Agent", b"bigcrawl")],
        "request_body": b"",
        "status": 200,
        "response_headers": [(b"Content-Type", b"text/html")],
        "response_body": body,
        "date_ms": DAY_MS + 1000 * at_s,
        "ip": "127.0.0.1",
        "record_id": new_record_id(),
    }
    return Exchange(**(values | changes))


def stored(directory: Path, *pages: Exchange, name: str = "c", is_indexed: bool = True, refers: bool = False) -> Path:
    """A file of these pages, in this order; with `refers`, copies are stored by reference."""
    directory.mkdir(parents=True, exist_ok=True)
    before = set(directory.glob(f"{name}-*.warc.gz"))
    writer = WarcWriter(directory, name, "n", origins=RecentOrigins(100 if refers else 0))
    for one in pages:
        writer.write(one)
    writer.close()
    [path] = set(directory.glob(f"{name}-*.warc.gz")) - before
    if is_indexed:
        assert index_file(path, ["cdxj"]) is not None
    return path
