"""Parquet files say of each page what its records say, and other tools read them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from fastwarc.warc import ArchiveIterator as FastwarcIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from bigcrawl.page_index.cdxj import read_line
from bigcrawl.page_index.index_files import index_file, index_path, unindexed_files
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.segments import WarcWriter
from tests.unit.page_index.test_index_files import URLS, warc_file
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.warc.records import Exchange

with suppress(ImportError):  # `make test` has none of these, and without them all tests here fail
    import duckdb
    from pyarrow import parquet as arrow_parquet

    from bigcrawl.page_index import parquet

pytestmark = pytest.mark.system
KINDS = ("cdxj", "parquet")
BODY = b"a page that is long enough to be referred to " * 40


def answer(number: int, url: str, body: bytes = b"page", **more: Any) -> Exchange:
    notes = {"fetchTimeMs": "12", "depth": "3", "priority": "-5", "via": "http://a.example/from"}
    notes |= {"key": "00c0ffee00c0ffee", "foundTime": "2026-01-02T03:04:05Z", "foundAddress": "192.0.2.9"}
    return exchange(number, body, **{"notes": notes, **more})._replace(url=url)


def rows_of(directory: Path, *pages: Exchange) -> list[dict[str, Any]]:
    """What is in the Parquet file of a WARC file with these pages."""
    writer = WarcWriter(directory, "c", "n", origins=RecentOrigins(10))
    for page in pages:
        writer.write(page)
    writer.close()
    (path,) = directory.glob("*.warc.gz")
    index_file(path, KINDS)
    return arrow_parquet.read_table(index_path(path, "parquet")).to_pylist()


def test_a_row_says_what_the_records_say(tmp_path: Path) -> None:
    """Address, time, answer, what the server told, what the crawl knew, and where the record is."""
    told = [
        (b"Content-Type", b"Text/HTML; charset=utf-8"),
        (b"Content-Language", b"de-DE, en"),
        (b"Server", b"nginx/1.25"),
    ]
    page = answer(0, "http://www.a.example.co.uk:8080/x?y", BODY, response_headers=told, ip="192.0.2.7")
    (row,) = rows_of(tmp_path, page)
    (path,) = tmp_path.glob("*.warc.gz")
    capture = read_line(index_path(path).read_bytes().splitlines()[0])
    time = row.pop("time")
    assert round(time.timestamp() * 1000) == page.date_ms
    assert row == {
        "url": "http://www.a.example.co.uk:8080/x?y",
        "host": "www.a.example.co.uk",
        "pld": "example.co.uk",
        "status": 200,
        "type": "text/html",
        "length": len(BODY),
        "digest": capture.digest,
        "language": "de-de",
        "parent": "http://a.example/from",
        "depth": 3,
        "priority": -5,
        "ip": "192.0.2.7",
        "server": "nginx/1.25",
        "fetch_ms": 12,
        "outcome": "ok",
        "filename": path.name,
        "offset": capture.offset,
        "size": capture.size,
        "key": "00c0ffee00c0ffee",
        "found": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "found_ip": "192.0.2.9",
    }


def test_what_a_record_does_not_say_is_null(tmp_path: Path) -> None:
    """A page without notes, headers and address of its server; its referrer is its parent if there is one."""
    bare = exchange(0, b"page", notes=None, response_headers=[], ip=None)
    referred = exchange(1, b"", notes=None, request_headers=[(b"Referer", b"http://a.example/r")], status=404)
    first, second = rows_of(tmp_path, bare._replace(url="http://a.example/"), referred)
    unknown = (
        "type",
        "language",
        "parent",
        "depth",
        "priority",
        "ip",
        "server",
        "fetch_ms",
        "key",
        "found",
        "found_ip",
    )
    assert {name: first[name] for name in unknown} == dict.fromkeys(unknown)
    assert first["length"] == 4
    assert (second["parent"], second["length"], second["outcome"]) == ("http://a.example/r", 0, "client-error")


def test_outcomes_tell_answers_apart(tmp_path: Path) -> None:
    """By status, by whether the body is whole, and by whether it is another's."""
    sent = [(b"Content-Length", b"%d" % len(BODY)), (b"Content-Type", b"text/plain")]
    pages = [
        answer(0, "http://a.example/0", BODY, response_headers=sent, record_id=b"<urn:uuid:0>"),
        answer(1, "http://a.example/1", BODY, response_headers=sent),
        answer(2, "http://a.example/2", truncated="length"),
        *(answer(3 + n, f"http://a.example/{3 + n}", status=s) for n, s in enumerate((304, 301, 404, 503, 999, 204))),
    ]
    rows = rows_of(tmp_path, *pages)
    expected = ["ok", "copy", "truncated", "unchanged", "redirect", "client-error", "server-error", "other", "ok"]
    assert [row["outcome"] for row in rows] == expected
    assert (rows[1]["length"], rows[1]["type"]) == (len(BODY), "text/plain"), "of a copy, as the server told"
    assert rows[1]["digest"] == rows[0]["digest"]


def test_a_hostile_answer_makes_a_row_like_others(tmp_path: Path) -> None:
    """Headers of 60 KB, of no encoding, numbers that are none: a row is bounded, and the file is valid."""
    long = b"x" * 60_000
    for number, headers in enumerate(
        (
            [(b"Server", long), (b"Content-Type", long), (b"Content-Language", long)],
            [(b"Server", b"\xff\xfe\x80"), (b"Content-Type", b";;;"), (b"Content-Language", b",,,")],
            [(b"Server", "sérvé".encode()), (b"Content-Type", b"\xc3\x28")],
        )
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        notes = {"fetchTimeMs": "9" * 5000, "depth": "one", "priority": "-" + "9" * 12, "via": "\udcff"}
        (row,) = rows_of(directory, answer(0, "http://a.example/", response_headers=headers, notes=notes))
        told = [row[name] for name in ("server", "type", "language")]
        assert all(value is None or len(value) <= 128 for value in told)
        assert (row["fetch_ms"], row["depth"], row["priority"]) == (None, None, -(2**31 - 1))


def test_rows_are_written_in_groups_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number and by bytes of text, so that long addresses take no more memory; all rows are there, in order."""
    monkeypatch.setattr(parquet, "_ROWS_MAX", 4)
    monkeypatch.setattr(parquet, "_TEXT_BYTES_MAX", 5000)
    urls = [f"http://a.example/{number}" for number in range(9)] + [f"http://a.example/{'x' * 4000}{n}" for n in "abc"]
    rows = rows_of(tmp_path, *(answer(number, url) for number, url in enumerate(urls)))
    assert [row["url"] for row in rows] == urls
    (path,) = tmp_path.glob("*.parquet")
    read = arrow_parquet.ParquetFile(path).metadata
    assert [read.row_group(number).num_rows for number in range(read.num_row_groups)] == [4, 4, 3, 1]


def test_all_readers_agree_on_the_number_of_pages(tmp_path: Path) -> None:
    """warcio, fastwarc, the lines of the CDXJ, pyarrow and DuckDB; DuckDB counts pages by PLD as Python does."""
    paths = [warc_file(tmp_path, urls) for urls in (URLS, URLS[:3], URLS[4:])]
    for path in paths:
        index_file(path, KINDS)
        with path.open("rb") as file:
            warcio = sum(record.rec_type == "response" for record in WarcioIterator(file))
        with path.open("rb") as file:
            fastwarc = sum(record.headers["WARC-Type"] == "response" for record in FastwarcIterator(file))
        cdxj = len(index_path(path).read_bytes().splitlines())
        rows = arrow_parquet.read_metadata(index_path(path, "parquet")).num_rows
        assert warcio == fastwarc == cdxj == rows
    with duckdb.connect() as db:
        asked = db.execute("SELECT pld, count(*) FROM read_parquet(?) GROUP BY pld", [f"{tmp_path}/*.parquet"])
        counted = dict(asked.fetchall())
    plds = ("b.example", "a.example", "::1")
    urls = [
        json.loads(line.split(b" ", 2)[2])["url"] for p in paths for line in index_path(p).read_bytes().splitlines()
    ]
    expected = Counter(next(pld for pld in plds if pld in url) for url in urls)
    assert counted == expected


def test_a_file_without_one_of_its_indexes_is_to_be_indexed(tmp_path: Path) -> None:
    """So a crawl that asks for Parquet from now on makes it of the files that it has."""
    path = warc_file(tmp_path)
    index_file(path, ["cdxj"])
    assert unindexed_files(tmp_path, ["cdxj"]) == []
    assert unindexed_files(tmp_path, KINDS) == [path]
    index_file(path, ["parquet"])
    assert unindexed_files(tmp_path, KINDS) == []


def test_a_file_of_others_makes_a_table_too(tmp_path: Path) -> None:
    """Records that are no answers of HTTP, and addresses that no crawl here has."""
    path = tmp_path / "other.warc.gz"
    blocks = []
    for target in ("dns:a.example", "http://a.example", "http://[::1", "urn:x"):
        head = f"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: {target}\r\nWARC-Date: 2026-11-25T22:05:12Z\r\n"
        blocks.append(gzip.compress(f"{head}Content-Type: text/dns\r\nContent-Length: 2\r\n\r\nok\r\n\r\n".encode()))
    path.write_bytes(b"".join(blocks))
    index_file(path, KINDS)
    rows = arrow_parquet.read_table(index_path(path, "parquet")).to_pylist()
    assert [(row["status"], row["host"], row["outcome"], row["length"]) for row in rows] == [
        (None, None, "other", 2)
    ] * 4
