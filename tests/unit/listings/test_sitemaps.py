"""Sitemaps: their entries, with what the site says of each."""

from __future__ import annotations

import pytest

from bigcrawl.listings.elements import SLICE_BYTES
from bigcrawl.listings.encodings import DECODED_BYTES
from bigcrawl.listings.sitemaps import (
    LOCATION_BYTES_MAX,
    REFERENCES_MAX,
    SitemapEntry,
    is_index,
    sitemap_entries,
)
from tests.support.costs.proportion import assert_costs


def read(body: bytes, most: int = 100) -> list[SitemapEntry]:
    return [entry for found in sitemap_entries(body, most) for entry in found]


def test_entry_has_its_hints_in_any_order() -> None:
    """Those of one entry do not pass to the next; images and comments are no entries."""
    body = (
        b"<urlset><url><lastmod>2026-11-25</lastmod><loc>/1</loc><priority> 0.8 </priority>"
        b"<changefreq>Daily</changefreq></url>"
        b"<url><loc>/2?a=1&amp;b=2</loc><image:image><image:loc>/no</image:loc></image:image></url>"
        b"<!-- <url><loc>/no</loc></url> --><s:url><s:loc><![CDATA[/3&amp;]]></s:loc></s:url>"
        b"<url><priority>1</priority></url><url><loc>/4</loc><lastmod>%s</lastmod></url></urlset>" % (b"9" * 999)
    )
    assert read(body) == [
        SitemapEntry("/1", "2026-11-25", "0.8", "Daily"),
        SitemapEntry("/2?a=1&b=2"),
        SitemapEntry("/3&amp;"),
        SitemapEntry("/4", "9" * 64),
    ]


@pytest.mark.parametrize(
    "inside",
    [
        b"<loc>/1</loc>",
        b"<lastmod>2026</lastmod>",
        b"<loc>/&#49;&lt;</loc>\n<priority>1</priority>",
        b"<loc>/1</loc><loc>/2</loc>",
        b"<loc>\x01\xff</loc>",
        b"",
        b"<loc>/1</loc>" * 20,
    ],
)
@pytest.mark.parametrize("root", [b"<urlset>", b"<urlset xmlns='u'>", b"<sitemapindex>", b"<x>"])
def test_usual_entry_is_read_as_any_other(root: bytes, inside: bytes) -> None:
    """An expression reads a usual one whole; one with an attribute is read tag by tag, up to the same limits."""
    name = b"sitemap" if b"index" in root else b"url"
    usual, other = (root + (b"<%b%b>%b</%b>" % (name, more, inside, name)) * 30 for more in (b"", b" a='1'"))
    for most in (5, 100):
        assert read(usual, most) == read(other, most)


def test_locations_without_entries_are_read() -> None:
    """A sitemap that leaves the tags of its entries out lists pages all the same."""
    assert [entry.location for entry in read(b"<urlset><loc>/1</loc><lastmod>x</lastmod><loc>/2</loc>")] == ["/1", "/2"]


def test_entry_may_cross_a_slice() -> None:
    """Its location and its hints are read in different slices, and make one entry."""
    for gap in range(SLICE_BYTES - 60, SLICE_BYTES + 9, 7):
        head = b"<urlset>" + b" " * (gap - 8)
        body = head + b"<url><loc>/1</loc><lastmod>2026</lastmod></url><url><loc>/2</loc></url>"
        assert read(body) == [SitemapEntry("/1", "2026"), SitemapEntry("/2")], gap


def test_comment_may_cross_any_number_of_slices() -> None:
    """Nothing in it is an entry, and what comes behind it is; without an end it is the rest."""
    inside = b"<url><loc>/no</loc></url> - -- > "
    for size in (SLICE_BYTES - 99, SLICE_BYTES, SLICE_BYTES + 9, 3 * SLICE_BYTES):
        comment = b"<!-- " + inside * (size // len(inside))
        begun = b"<urlset><url><loc>/1</loc>" + comment
        assert read(begun + b"--><lastmod>2026</lastmod></url><url><loc>/2</loc></url>") == [
            SitemapEntry("/1", "2026"),
            SitemapEntry("/2"),
        ]
        assert read(begun) == [SitemapEntry("/1")]


def test_location_that_no_setting_allows_is_said_to_be_too_long() -> None:
    """Wherever in a slice it begins, it is whole or not there; the next one is read."""
    for size in (LOCATION_BYTES_MAX, LOCATION_BYTES_MAX + 1, 5 * LOCATION_BYTES_MAX):
        for before in (8, SLICE_BYTES - 60, SLICE_BYTES - 9):
            location = b"/" + b"a" * (size - 1)
            body = b"<urlset>".ljust(before) + b"<url><loc>%b</loc><lastmod>1</lastmod></url><url><loc>/2</loc></url>"
            first, second = read(body % location)
            assert first in (SitemapEntry(location.decode(), "1"), SitemapEntry("", "1", is_too_long=True))
            assert first.is_too_long or size <= LOCATION_BYTES_MAX
            assert second == SitemapEntry("/2")


def test_utf_16_is_told_by_its_root_and_read_by_and_by() -> None:
    """What is none of it takes long to decode, so no more than a portion is decoded between two lists."""
    body = "<urlset><loc>/1</loc>".encode("utf-16") + b"\x00\xd8" * DECODED_BYTES
    assert is_index(body) is False
    found = list(sitemap_entries(body, 9))
    assert found[:2] == [[], []]
    assert [entry.location for entry in found[-1]] == ["/1"]


@pytest.mark.parametrize("most", [0, 1, 7])
def test_count_is_bounded(most: int) -> None:
    """Entries, and tags that are looked at for them."""
    body = b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % n for n in range(50))
    assert len(read(body, most)) == most
    assert read(b"<urlset>" + b"<url>" * (10 * most) + b"<url><loc>/1</loc></url>", most) == []


@pytest.mark.parametrize(
    ("body", "answer"), [(b"<s:sitemapindex>", True), (b"<urlset>", False), (b"<html>", None), (b"", None)]
)
def test_kind_is_told_by_the_root(body: bytes, answer: bool | None) -> None:
    """An index, a sitemap, or neither."""
    assert is_index(body) is answer


@pytest.mark.parametrize("reference", [b"&amp;", b"&amp;amp;", b"&#38;", b"&a"], ids=bytes.decode)
def test_locations_of_references_cost_in_proportion(reference: bytes) -> None:
    """What is read of eight times as many costs some eight times as much, and not sixty-four."""
    many, few = (b"<urlset><url><loc>" + reference * count + b"</loc></url>" for count in (8_000, 1_000))
    assert_costs(24, lambda: read(many, 50_000), lambda: read(few, 50_000))


def test_references_that_cost_are_counted() -> None:
    """Those but for `&amp;`, over all locations: once there are too many, no further slice is read."""
    costly = b"<url><loc>/%b</loc></url>" % (b"&#38;" * (SLICE_BYTES // 5))
    assert costly.count(b"&") > REFERENCES_MAX * 7
    assert len(read(b"<urlset>" + costly * 3, 7)) == 1
    assert len(read(b"<urlset>" + costly.replace(b"&#38;", b"&amp;") * 3, 7)) == 3
