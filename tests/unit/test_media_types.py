"""Media types are those that browsers find, for every reader of a Content-Type."""

from __future__ import annotations

import gzip

import pytest
import xtractmime
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from bigcrawl.commands.pages.stored_links import LinkReader
from bigcrawl.downloads.response_parts import response_class
from bigcrawl.media_types import HTML, is_binary, sniff_media_type, type_of, type_told
from bigcrawl.middlewares.compression import CompressionMiddleware
from bigcrawl.spiders.broad import is_html
from bigcrawl.stored.pages import StoredPage
from tests.support.content_types import PAGE, ROWS, UNTOLD, Row
from tests.support.costs.proportion import assert_costs
from tests.support.running.tables import each
from tests.unit.downloads.crawlers import new_crawler

URL = "http://h.example/file.pdf"
STARTS = [row.body for row in UNTOLD]
OURS = ("html further on", "xhtml")  # rows that differ from the standard


@each("row", ROWS, ids=lambda row: row.name)
def test_type_is_that_which_browsers_find(row: Row) -> None:
    """By headers, or by bytes where they tell nothing."""
    assert type_of(row.headers, row.body) == row.type
    assert type_told(row.headers) in ("", row.type)


@each("row", ROWS, ids=lambda row: row.name)
def test_readers_agree_on_what_is_html(row: Row) -> None:
    """The class of a response, packed or not, the spiders and the graph."""
    headers = {"Content-Type": list(row.headers)} if row.headers else {}
    plain = Response(URL, headers=headers, body=row.body)
    kind = response_class(plain.headers, URL, row.body)
    assert issubclass(kind, HtmlResponse) or row.type not in HTML  # Scrapy's own is, too, for some other types
    assert is_html(plain) == (row.type in HTML)
    if row.body and not is_binary(row.body):
        packed = Response(URL, headers={**headers, "Content-Encoding": "gzip"}, body=gzip.compress(row.body))
        unpacked = CompressionMiddleware.from_crawler(new_crawler()).process_response(Request(URL), packed)
        assert isinstance(unpacked, kind)
    links = LinkReader("b", 1 << 20, obeys_nofollow=True).links(
        StoredPage(URL, 200, "HTTP/1.1", {b"Content-Type": list(row.headers)} if row.headers else {}, row.body), URL
    )
    if row.body == PAGE:
        assert links == (["http://h.example/next"] if row.type in HTML else [])


@each("row", [row for row in UNTOLD if row.name not in OURS], ids=lambda row: row.name)
def test_another_reader_sniffs_the_table_alike(row: Row) -> None:
    """So the table is not ours alone."""
    assert xtractmime.extract_mime(row.body, http_origin=True).decode() == row.type


@given(st.sampled_from(STARTS), st.binary(max_size=3), st.binary(max_size=40), st.sampled_from(b" >\nx"))
def test_any_bytes_are_sniffed_as_by_another_reader(start: bytes, before: bytes, after: bytes, end: int) -> None:
    """But for what is HTML further on, and media that are only binary here."""
    body = before + start + bytes([end]) + after
    other = xtractmime.extract_mime(body, http_origin=True).decode()
    if b"<html" not in body.lower() and other not in ("video/mp4", "video/webm", "audio/mpeg"):
        assert sniff_media_type(body) == other


@given(st.lists(st.binary(max_size=20), max_size=3))
def test_no_header_breaks_the_reader(headers: list[bytes]) -> None:
    """What it returns is a type, or nothing."""
    told = type_told(headers)
    assert told == "" or told.count("/") == 1


def test_type_of_a_text_response_is_not_that_of_its_class() -> None:
    """Scrapy makes a TextResponse of a page that tells `text`; its links are followed all the same."""
    kind = response_class(Response(URL, headers={"Content-Type": "text/markdown"}).headers, URL, PAGE)
    assert issubclass(kind, TextResponse)
    assert not issubclass(kind, HtmlResponse)


@pytest.mark.parametrize("unit", [b" ", b"<", b"<!--", b'"', b",", b"a/", b'\\"', b'a/b;"\\'])
def test_costly_beginnings_are_bounded(unit: bytes) -> None:
    """Only the beginning is read, of a body and of a header: eight times as much costs eight times as much at most."""
    more, fewer = ([unit * 100_000], unit * 4_000_000), ([unit * 12_500], unit * 500_000)
    assert_costs(24, lambda: type_of(*more), lambda: type_of(*fewer))
