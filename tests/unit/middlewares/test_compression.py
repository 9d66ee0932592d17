"""Bodies that unpack into more than they should: bombs of each encoding, and encodings packed into each other."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.gz import gunzip as scrapys_gunzip

from bigcrawl.downloads.packing import gunzip
from bigcrawl.middlewares.compression import FREE_BYTES, CompressionMiddleware
from bigcrawl.scheduler.adapter.fetch_errors import error_outcome, is_own
from bigcrawl.scheduler.scheduler import Scheduler
from tests.support.costs.proportion import assert_costs
from tests.support.sizes import examples
from tests.unit.downloads.crawlers import new_crawler
from tests.unit.downloads.test_limits import counts
from tests.unit.scheduler.records.test_held_urls import held_url

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": partial(brotli.compress, quality=9),
    "zstd": zstd.compress,
}
URL = "http://a.example/"
BLANKS = b" " * 20_000_000


def unpack(body: bytes, encoding: str, crawler: Crawler, **meta: Any) -> Response:
    request = Request(URL, meta=meta)
    packed = Response(URL, body=body, headers={"Content-Encoding": encoding, "Content-Type": "text/html"})
    middleware = CompressionMiddleware.from_crawler(crawler)
    try:
        answer = middleware.process_response(request, packed)
    finally:
        middleware._unread._stats_buffer.flush()
    assert isinstance(answer, Response)
    return answer


MANY = 16 << 20
USUAL = random.Random(1).randbytes(MANY)
NAMED = b"\x1f\x8b\x08\x08" + bytes(6)
COSTLY = {
    "frames": zstd.compress(b"x") * (MANY // 10),
    "empty frames": zstd.compress(b"") * (MANY // 10),
    "frames to skip": b"\x50\x2a\x4d\x18\0\0\0\0" * (MANY // 8),
    "members": gzip.compress(b"") * (MANY // 20),
    "long name": NAMED + b"n" * MANY,
    "long names": (NAMED + b"n" * 4_000 + b"\0" + zlib.compress(b"", wbits=-15) + bytes(8)) * 4_000,
    "zeros between members": (gzip.compress(b"") + bytes(4_000)) * 4_000,
}


@pytest.mark.parametrize("body", COSTLY.values(), ids=COSTLY)
def test_costly_packing_is_unpacked_at_a_bounded_cost(body: bytes) -> None:
    """At most what a page of the same packed size costs, a few times; it was 14 s."""
    crawler, usual = new_crawler(), gzip.compress(USUAL, 1)

    def unpacked(packed: bytes, encoding: str) -> None:
        with suppress(ValueError, EOFError):
            unpack(packed, encoding, crawler)

    encoding = "zstd" if body.startswith((b"\x28", b"\x50")) else "gzip"
    assert_costs(12, lambda: unpacked(body, encoding), lambda: unpacked(usual, "gzip"))


@given(st.lists(st.sampled_from([b"", b"a", b"text " * 3_000, bytes(range(256)) * 40]), max_size=3), st.data())
@settings(max_examples=examples(200))
def test_gzip_is_unpacked_as_by_scrapy(parts: list[bytes], data: st.DataObject) -> None:
    """Members, zeros between them, a cut: what can be unpacked is."""
    between = st.sampled_from([b"", bytes(3)])
    whole = b"".join(gzip.compress(part) + data.draw(between) for part in parts)
    packed = whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    try:
        right = scrapys_gunzip(packed)
    except (EOFError, OSError):
        right = b""
    try:
        found = gunzip(packed)[0]
    except EOFError:
        found = b""
    assert found == right


@pytest.mark.parametrize("encoding", PACKERS)
def test_page_is_unpacked_as_ever(encoding: str) -> None:
    """As Scrapy's own middleware does it: body, class, headers."""
    page = b"<p>" + b"some words " * 10_000 + b"</p>"
    answer = unpack(PACKERS[encoding](page), encoding, new_crawler())
    assert type(answer) is HtmlResponse
    assert answer.body == page
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("maxsize", [0, 1 << 30])
def test_bomb_is_refused_by_its_ratio(encoding: str, maxsize: int) -> None:
    """Long before it is whole, whatever a body may have; counted under the ratio."""
    crawler = new_crawler(DOWNLOAD_MAXSIZE=maxsize, BIGCRAWL_DECOMPRESSION_RATIO_MAX=50)
    with pytest.raises(IgnoreRequest, match="BIGCRAWL_DECOMPRESSION_RATIO_MAX"):
        unpack(PACKERS[encoding](BLANKS), encoding, crawler)
    assert counts(crawler) == {"decompression-ratio": 1}


def test_bomb_in_a_bomb_is_refused() -> None:
    """The first bound is that of the bytes that came, however often they are packed."""
    crawler = new_crawler(BIGCRAWL_ENCODINGS_MAX=10)
    with pytest.raises(IgnoreRequest, match="BIGCRAWL_DECOMPRESSION_RATIO_MAX"):
        unpack(gzip.compress(gzip.compress(BLANKS)), "gzip, gzip", crawler)
    assert counts(crawler) == {"decompression-ratio": 1}


def test_body_larger_than_allowed_is_refused_by_its_size() -> None:
    """DOWNLOAD_MAXSIZE, or the request's own, as in Scrapy."""
    words = b"".join(b"%d " % number for number in range(200_000))
    for given_settings, meta in (({"DOWNLOAD_MAXSIZE": 100_000}, {}), ({}, {"download_maxsize": 100_000})):
        crawler = new_crawler(**given_settings)
        with pytest.raises(IgnoreRequest, match="DOWNLOAD_MAXSIZE"):
            unpack(gzip.compress(words), "gzip", crawler, **meta)
        assert counts(crawler) == {"decompressed-size": 1}


def test_small_body_may_grow_as_it_likes() -> None:
    """A MiB of blanks hurts nobody."""
    crawler = new_crawler(BIGCRAWL_DECOMPRESSION_RATIO_MAX=2)
    assert len(unpack(gzip.compress(b" " * FREE_BYTES), "gzip", crawler).body) == FREE_BYTES


@pytest.mark.parametrize("encoding", ["gzip, gzip, gzip", "gzip,gzip,gzip,br"])
def test_body_packed_too_often_is_refused(encoding: str) -> None:
    """Not one round of it is unpacked; twice is what some proxies do."""
    crawler = new_crawler()
    twice = gzip.compress(gzip.compress(b"<p>page</p>"))
    assert unpack(twice, "gzip, gzip", crawler).body == b"<p>page</p>"
    with pytest.raises(IgnoreRequest, match="BIGCRAWL_ENCODINGS_MAX"):
        unpack(gzip.compress(twice), encoding, crawler)
    assert counts(crawler) == {"encodings": 1}


@pytest.mark.parametrize("encoding", PACKERS)
def test_body_that_is_not_packed_as_it_says_is_counted(encoding: str) -> None:
    """No spider sees it, and its errback gets Scrapy's own error, which is a page's and not one of our code."""
    crawler = new_crawler()
    scrapys = HttpCompressionMiddleware(crawler=crawler)
    page = Response(URL, body=b"\x00\x01 no text", headers={"Content-Encoding": encoding})
    with pytest.raises(Exception, match=r".") as wanted:
        scrapys.process_response(Request(URL), page)
    with pytest.raises(type(wanted.value)) as caught:
        unpack(page.body, encoding, crawler)
    assert str(caught.value) == str(wanted.value)
    assert error_outcome(caught.value) == "error:dataloss"
    assert not is_own(caught.value)
    assert counts(crawler) == {"packing": 1}


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("body", [b"<p>a page that was never packed</p>", b"xylophone", "größe".encode("cp1252")])
def test_text_that_is_not_packed_is_as_it_is(encoding: str, body: bytes) -> None:
    """Servers add the header to pages that they do not pack; browsers show them."""
    assert unpack(body, encoding, new_crawler()).body == body


def test_refused_body_is_no_page_that_was_fetched() -> None:
    """Its URL ends as too large, where a page's would end as `status:200`."""
    crawler = new_crawler()
    frontier = Scheduler.from_crawler(crawler)
    request, held = Request(URL), held_url(1)
    frontier.started.record_start(request, held)
    held.outcome = "status:200"
    packed = Response(URL, body=gzip.compress(BLANKS), headers={"Content-Encoding": "gzip"})
    with pytest.raises(IgnoreRequest):
        CompressionMiddleware.from_crawler(crawler).process_response(request, packed)
    assert held.outcome == "error:too-large"


def test_what_is_overridden_is_there() -> None:
    """A release of Scrapy that unpacks elsewhere would leave its own limit in force, and no other."""
    assert callable(HttpCompressionMiddleware._handle_encoding)
    assert callable(HttpCompressionMiddleware._split_encodings)


@pytest.mark.parametrize(
    ("body", "encoding", "is_cut"),
    [
        (gzip.compress(b"<p>" * 999)[:-12], "gzip", True),
        (gzip.compress(b"<p>" * 999), "gzip", False),
        (b"\0\1\2", "compress", True),
        (b"<p>", "compress", False),
    ],
    ids=["cut", "whole", "unknown", "text"],
)
def test_body_that_is_cut_or_stays_packed_has_its_reason(body: bytes, encoding: str, is_cut: bool) -> None:
    """The spider sees it all the same."""
    crawler = new_crawler()
    unpack(body, encoding, crawler)
    assert crawler.stats is not None
    assert crawler.stats.get_value("bigcrawl/limits/packing", 0) == is_cut
