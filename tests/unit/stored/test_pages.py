"""A stored page is what the crawl had received, whoever wrote its file."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scrapy import Request

from bigcrawl.page_index.index_files import index_file
from bigcrawl.page_index.page_records import page_records
from bigcrawl.pipelines.warc import _exchange_of
from bigcrawl.stored.catalogue import StoredPlace, read_catalogue
from bigcrawl.stored.pages import PageReader, StoredPage, UnreadablePageError, without_chunks
from bigcrawl.warc.records import new_record_id
from tests.support.answers import ROWS, Row
from tests.support.sha1_collision import FIRST, SECOND
from tests.unit.downloads.test_odd_answers import read as read_answer
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.warc.records import Exchange

A, B = "http://a.example/", "http://b.example/"
LONG = bytes(range(256)) * 10


def read(path: Path, url: str, bytes_max: int = 0) -> StoredPage:
    catalogue = read_catalogue([path])
    reader = PageReader(catalogue, bytes_max)
    try:
        return reader.read_page(catalogue.place_of_rank(catalogue.rank_of(url)))
    finally:
        reader.close()


def read_back(tmp_path: Path, exchange: Exchange, **more: Any) -> StoredPage:
    return read(stored(tmp_path, page(B), exchange, page(f"{B}2")), exchange.url, **more)


def test_page_comes_back_with_its_request_and_notes(tmp_path: Path) -> None:
    """Status, headers of all kinds, body, address, and what the crawl knew."""
    headers = [(b"Content-Type", b"text/html"), (b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2"), (b"X-Empty", b"")]
    found = read_back(
        tmp_path,
        page(
            A,
            LONG,
            status=404,
            response_headers=headers,
            notes={"fetchTimeMs": "120", "depth": "3", "via": B},
            protocol="h2",
        ),
    )
    assert found == StoredPage(
        A,
        404,
        "h2",
        {b"Content-Type": [b"text/html"], b"Set-Cookie": [b"a=1", b"b=2"], b"X-Empty": [b""]},
        LONG,
        [],
        "127.0.0.1",
        "GET",
        b"",
        120,
        3,
        B,
    )


@pytest.mark.parametrize("size", [0, 1, 4_000, 40_000])
def test_request_of_any_size_comes_back(tmp_path: Path, size: int) -> None:
    """Its body may be longer than what is read at first."""
    body = np.random.default_rng(1).bytes(size)
    found = read_back(tmp_path, page(A, method="POST", request_body=body))
    assert (found.method, found.request_body) == ("POST", body)


def test_headers_that_the_file_renames_come_back(tmp_path: Path) -> None:
    """A length that did not fit the body, and chunks that are removed."""
    headers = [(b"Content-Length", b"999"), (b"Transfer-Encoding", b"chunked"), (b"Server", b"x")]
    found = read_back(tmp_path, page(A, b"12", response_headers=headers))
    assert found.headers == {b"Content-Length": [b"999"], b"Server": [b"x"]}


@pytest.mark.parametrize(
    ("truncated", "flag"),
    [
        ("length", "truncated"),
        ("time", "truncated-time"),
        ("disconnect", "dataloss"),
        ("unspecified", "download_stopped"),
    ],
)
def test_incomplete_page_has_the_flag_of_its_download(tmp_path: Path, truncated: str, flag: str) -> None:
    """A spider may look at it."""
    assert read_back(tmp_path, page(A, truncated=truncated)).flags == [flag]


def test_copy_has_the_body_of_its_original(tmp_path: Path) -> None:
    """And its own headers; that it is a copy is known."""
    path = stored(tmp_path, page(A, LONG), page(B, LONG, response_headers=[(b"Server", b"b")]), refers=True)
    assert b"WARC-Type: revisit" in gzip.decompress(path.read_bytes())
    found = read(path, B)
    assert (found.body, found.headers, found.original_url, found.flags) == (LONG, {b"Server": [b"b"]}, A, [])
    assert read(path, A).original_url == ""


def test_copy_of_a_page_with_another_status_is_no_copy_for_a_spider(tmp_path: Path) -> None:
    """A body that came with an error before was seen by no spider."""
    path = stored(tmp_path, page(A, LONG, status=404), page(B, LONG), refers=True)
    assert (read(path, B).body, read(path, B).original_url) == (LONG, "")


def test_copy_whose_original_is_elsewhere_cannot_be_read(tmp_path: Path) -> None:
    """It says which page is missing."""
    path = stored(tmp_path, page(A, LONG), page(B, LONG), refers=True)
    catalogue = read_catalogue([path])
    place = catalogue.place_of_rank(catalogue.rank_of(B))
    path.write_bytes(path.read_bytes()[place.offset :])
    index_file(path, ["cdxj"])
    with pytest.raises(UnreadablePageError, match=f"is a copy of {A}, which none of the files has") as error:
        read(path, B)
    assert error.value.reason == "no-original"


def test_copy_has_the_body_of_its_own_original_of_two_with_its_sha1(tmp_path: Path) -> None:
    """A site serves one of them after the other; the record that a copy names is the one."""
    captures = (page(A, SECOND, 3), page(A, FIRST, 4), page(A, SECOND, 5))
    assert read(stored(tmp_path, *captures, page(B, FIRST, 9), refers=True), B).body == FIRST


@pytest.mark.parametrize("at", [0, 45, 89])
def test_original_among_many_versions_of_its_page_is_found(tmp_path: Path, at: int) -> None:
    """By the time to which the copy refers, also if a slow page was written later than others fetched after it."""
    versions = [page(A, b"%03d" % number + LONG, number) for number in range(90)]
    slow = page(B, b"slow", at + 5)
    copy = page(f"{B}copy", versions[at].response_body, 300)
    path = stored(tmp_path, *versions[:at], slow, *versions[at:], copy, refers=True)
    assert b"WARC-Type: revisit" in gzip.decompress(path.read_bytes())
    assert read(path, f"{B}copy").body == versions[at].response_body


def test_too_large_page_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """However well it is packed: 16 MB of zeros are 16 KB of file."""
    with pytest.raises(UnreadablePageError, match="DOWNLOAD_MAXSIZE") as error:
        read_back(tmp_path, page(A, bytes(16 << 20)), bytes_max=1 << 20)
    assert error.value.reason == "too-large"


def test_damaged_records_are_told_apart_from_pages(tmp_path: Path) -> None:
    """A cut file, a wrong offset, something else at the offset; what stands behind a page may be cut."""
    path = stored(tmp_path, page(B), page(A, np.random.default_rng(1).bytes(9_000)))
    catalogue = read_catalogue([path])
    place = catalogue.place_of_rank(catalogue.rank_of(A))
    reader = PageReader(catalogue, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[: place.offset + place.size + 20])
    assert reader.read_page(place).method == "GET"
    for wrong in (StoredPlace(path, place.offset + 1, place.size, False), StoredPlace(path, 1 << 40, 10, False)):
        with pytest.raises(UnreadablePageError) as error:
            reader.read_page(wrong)
        assert error.value.reason == "damaged"
    for left in (4_000, 0, -1):
        path.write_bytes(whole[: place.offset + left])
        with pytest.raises(UnreadablePageError, match="cut off by the end of the file"):
            reader.read_page(place)
    path.write_bytes(whole[: place.offset] + gzip.compress(b"hello"))
    with pytest.raises(UnreadablePageError, match="not a complete record"):
        reader.read_page(place)
    reader.close()


def test_page_of_a_file_that_is_gone_cannot_be_read(tmp_path: Path) -> None:
    """Nor can a copy whose original's file is gone; all else goes on."""
    first = stored(tmp_path / "a", page(A, LONG))
    both = stored(tmp_path / "b", page(A, LONG), page(B, LONG), refers=True)
    catalogue = read_catalogue([both, first])
    a, b = (catalogue.place_of_rank(catalogue.rank_of(url)) for url in (A, B))
    both.rename(tmp_path / "moved.warc.gz")
    reader = PageReader(catalogue, 0)
    for place in (b, a._replace(path=both)):
        with pytest.raises(UnreadablePageError, match="cannot be read: No such file") as error:
            reader.read_page(place)
        assert error.value.reason == "damaged"
    assert reader.read_page(a._replace(path=first)).body == LONG
    reader.close()


def foreign(path: Path, head: str, block: bytes) -> Path:
    """A file of one record, as others write them."""
    lines = f"WARC/1.0\r\nWARC-Record-ID: <urn:x>\r\n{head}Content-Length: {len(block)}\r\n\r\n"
    path.write_bytes(gzip.compress(lines.encode() + block + b"\r\n\r\n"))
    return path


def test_files_of_other_crawlers_are_read(tmp_path: Path) -> None:
    """Chunks that were kept, headers in other cases, a URL in brackets, no request, a resource without HTTP."""
    common = f"WARC-Target-URI: <{A}>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    http = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nCONTENT-TYPE: text/html\r\n\r\n5;x=1\r\nhello\r\n0\r\n\r\n"
    )
    path = foreign(
        tmp_path / "x.warc.gz",
        f"WARC-Type: response\r\n{common}Content-Type: application/http; msgtype=response\r\n",
        http,
    )
    found = read(path, A)
    assert (found.url, found.body, found.headers, found.method) == (
        A,
        b"hello",
        {b"Content-Type": [b"text/html"]},
        "GET",
    )
    path = foreign(tmp_path / "y.warc.gz", f"WARC-Type: resource\r\n{common}Content-Type: text/plain\r\n", b"text")
    found = read(path, A)
    assert (found.status, found.body, found.headers) == (200, b"text", {b"Content-Type": [b"text/plain"]})


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"3\r\nabc\r\n", b"abc"),
        (b"<p>not chunked</p>", b"<p>not chunked</p>"),
        (b"", b""),
        (b"zz\r\nabc", b"zz\r\nabc"),
        (b"0\r\n\r\n", b""),
        (b"fffffffff\r\nabc", b"fffffffff\r\nabc"),
    ],
)
def test_chunks_are_removed_where_they_are(body: bytes, found: bytes) -> None:
    """A body without them is left as it is, whatever its header says."""
    assert without_chunks(body) == found


@pytest.mark.parametrize("is_indexed", [True, False])
def test_page_under_a_url_in_other_bytes_is_found(tmp_path: Path, *, is_indexed: bool) -> None:
    """As other crawlers store it: raw bytes, in angle brackets. They are escaped one by one."""
    path = stored(tmp_path, page(f"{A}c%61f%E9"), is_indexed=False)
    record = gzip.decompress(path.read_bytes()).replace(
        b"http://a.example/c%61f%E9\r\n", b"<http://a.example/c%61f\xe9>\r\n"
    )
    ends = [*record.split(b"WARC/1.1\r\n")[1:]]
    path.write_bytes(b"".join(gzip.compress(b"WARC/1.1\r\n" + each) for each in ends))
    if is_indexed:
        index_file(path, ["cdxj"])
    assert read(path, f"{A}c%61f%E9").url == f"{A}c%61f%E9"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_odd_answer_comes_back_as_it_was_received(tmp_path: Path, row: Row) -> None:
    """Status, headers and body, still packed, whatever its head and lengths were."""
    response = read_answer(row.sent)
    exchange = _exchange_of(Request(A), response, 0, new_record_id(), {})
    found = read_back(tmp_path, exchange)
    assert (found.status, found.body, found.protocol) == (response.status, response.body, response.protocol)
    told = {name: response.headers.getlist(name) for name in response.headers}
    for headers in (found.headers, told):
        headers.pop(b"Content-Length", None)  # the record has one that is right
    assert found.headers == {name: [value.replace(b"\0", b" ") for value in told[name]] for name in told}


PAGE = b"<p>a page</p>\r\n\r\n"
HEADS = {
    "LF": b"HTTP/1.1 200 OK\nContent-Type: text/html\nX-A: b\n\n",
    "LF, no reason": b"HTTP/1.1 200\nContent-Type: text/html\nX-A: b\n\n",
    "mixed": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-A: b\n\r\n",
    "mixed the other way": b"HTTP/1.1 200 OK\nContent-Type: text/html\r\nX-A: b\r\n\n",
    "no reason": b"HTTP/1.1 200\r\nContent-Type: text/html\r\nX-A: b\r\n\r\n",
    "blank before a colon": b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nX-A: b\r\n\r\n",
    "ICY": b"ICY 200 OK\r\nContent-Type: text/html\r\nX-A: b\r\n\r\n",
    "small letters": b"http/1.1 200 ok\r\nContent-Type: text/html\r\nX-A: b\r\n\r\n",
    "tab": b"HTTP/1.1\t200 OK\r\nContent-Type: text/html\r\nX-A: b\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_head_is_read_as_other_tools_keep_it(tmp_path: Path, head: bytes) -> None:
    """RFC 9112, 2.2: a recipient may take a line feed for the end of a line. The index says the same."""
    block = head + PAGE
    record = (
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: %b\r\nWARC-Date: 2026-11-25T10:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
    ) % (A.encode(), len(block), block)
    path = tmp_path / "other.warc.gz"
    path.write_bytes(gzip.compress(record))
    [indexed] = page_records(path)
    assert (indexed.status, indexed.media_type, indexed.body_bytes) == (200, "text/html", len(PAGE))
    found = read(path, A)
    assert (found.status, found.body) == (200, PAGE)
    assert found.headers == {b"Content-Type": [b"text/html"], b"X-A": [b"b"]}
