"""A crawl is replayed by pywb: each page as its server sent it, and every reader counts the same pages."""

from __future__ import annotations

import http.client
import random
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import duckdb
import pytest
from fastwarc.warc import ArchiveIterator as FastwarcIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from bigcrawl.page_index.cdxj import Capture, read_line
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import indexes
from tests.support.replaying.pywb import pywb, sent_by
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.replaying.pywb import Replayed

pytestmark = pytest.mark.system

PAGES = 1000
FEATURES = "redirects,statuses,bodies,charsets,markup,copies"
SETTINGS = {
    "BIGCRAWL_HOST_DELAY": 0.05,
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_WARC_INDEX": "cdxj,parquet",
    "BIGCRAWL_WARC_COPIES": "by-reference",
}
# Redirects to themselves, with which pywb refuses to answer; answers that change with time.
LEFT_OUT = ("to-itself", "limited-", "unavailable-until-")
# pywb calls XHTML HTML, so that browsers take its pages as such.
XHTML = "application/xhtml+xml"
# What a server says of the connection and not of the page, or of the moment.
OF_THE_MOMENT = {"connection", "date", "keep-alive", "transfer-encoding", "content-length"}


def origin_page(url: str) -> Replayed:
    """What the server of a URL sends when it is asked as the crawl asked it."""
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    try:
        return sent_by(connection, parts._replace(scheme="", netloc="").geturl() or "/", {})
    finally:
        connection.close()


def captures_in(directory: Path) -> list[Capture]:
    return [read_line(line) for path in directory.glob("*.cdxj") for line in path.read_bytes().splitlines()]


def test_pywb_replays_a_thousand_pages_as_they_were_sent(tmp_path: Path) -> None:
    """Status, headers and body, byte by byte; redirects, errors and copies too; before and after copies are dropped."""
    warc = tmp_path / "crawl" / "warc"
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=60, pages=30, features=FEATURES) as web:
        with Crawl(tmp_path / "crawl", web.seeds, SETTINGS) as crawl:
            assert crawl.run(900) == 0
            indexes(warc, ".parquet")
            captures = captures_in(warc)
            found = Counter((capture.key, capture.stamp) for capture in captures)
            # Those that differ in nothing that replay asks by, as two spellings of one address within a second.
            captures = [capture for capture in captures if found[capture.key, capture.stamp] == 1]
            captures = [capture for capture in captures if not capture.url.partition("/fair/")[2].startswith(LEFT_OUT)]
            chosen = random.Random(7).sample(captures, PAGES)
            assert {"warc/revisit", "text/html"} <= {capture.mime for capture in chosen}
            sent = {capture: origin_page(capture.url) for capture in chosen}
            assert_replayed(warc, tmp_path / "first", sent)
            assert_counted_alike(warc)
            told = crawl.asked("warc", "compact")
        assert told["problems"] == []
        assert_replayed(warc, tmp_path / "second", sent)
        assert_counted_alike(warc)


def assert_replayed(warc: Path, work: Path, sent: dict[Capture, Replayed]) -> None:
    """pywb answers each as its server did."""
    with pywb(warc, work) as wayback:
        found = {capture: wayback.page(capture.url, capture.stamp) for capture in sent}
    assert {one.url: names for one in sent if (names := different(found[one], sent[one]))} == {}


def different(found: Replayed, expected: Replayed) -> list[str]:
    """What an answer of pywb has other than that of the server; of names of headers, pywb prefixes some."""
    told = {name.removeprefix("x-archive-orig-"): value for name, value in found.headers.items()}
    headers = {name: value for name, value in expected.headers.items() if not value.startswith(XHTML)}
    names = [name for name, value in headers.items() if name not in OF_THE_MOMENT and told.get(name) != value]
    return [*names, *(name for name in ("status", "body") if getattr(found, name) != getattr(expected, name))]


def assert_counted_alike(warc: Path) -> None:
    """warcio, fastwarc, the CDXJ and Parquet agree on the number of pages, file by file."""
    for path in warc.glob("*.warc.gz"):
        with path.open("rb") as file:
            warcio = sum(record.rec_type in ("response", "revisit") for record in WarcioIterator(file))
        with path.open("rb") as file:
            fastwarc = sum(record.headers["WARC-Type"] in ("response", "revisit") for record in FastwarcIterator(file))
        stem = str(path).removesuffix(".warc.gz")
        with duckdb.connect() as db:
            [(rows,)] = db.execute("SELECT count(*) FROM read_parquet(?)", [f"{stem}.parquet"]).fetchall()
        lines = sum(1 for capture in captures_in(warc) if capture.filename == path.name)
        assert warcio == fastwarc == rows == lines > 0
