"""Feeds: entries of RSS and Atom, whatever is around them."""

from __future__ import annotations

import pytest

from bigcrawl.listings.feeds import FEEDS_OF_PAGE_MAX, TAGS_MAX, FeedEntry, feed_entries, feeds_of_page, is_feed

RSS = b"<rss><channel><link>http://a.example/</link>%s</channel></rss>"
ITEM = b"<item><link>/%d</link></item>"


def read(body: bytes, most: int = 10) -> list[FeedEntry]:
    return [entry for found in feed_entries(body, most) for entry in found]


def urls(body: bytes, most: int = 10) -> list[str]:
    return [entry.url for entry in read(body, most)]


def test_entries_of_rss_are_read_with_title_and_date() -> None:
    """A link, or a guid that is one; what belongs to the channel or to an item's media is not the item's."""
    items = (
        b"<item><media:content><title>no</title></media:content><title>A &amp;amp; B</title><link> http://b.example/1 "
        b'</link><atom:link href="/no"/><pubDate>Wed, 25 Nov 2026 10:00:00 GMT</pubDate></item>'
        b"<item><guid>http://b.example/2</guid><dc:date>2026-11-25</dc:date></item>"
        b'<item><guid isPermaLink="false">2</guid></item><item><title><![CDATA[<b>]]></title><link>/3</link></item>'
    )
    assert read(RSS % items) == [
        FeedEntry("http://b.example/1", "A & B", "Wed, 25 Nov 2026 10:00:00 GMT"),
        FeedEntry("http://b.example/2", "", "2026-11-25"),
        FeedEntry("/3", "<b>", ""),
    ]


def test_entries_of_atom_are_read_under_any_prefix() -> None:
    """The alternate link; that of a source is another feed's."""
    entry = (
        '<P:entry><P:link rel="self" href="/no"/><P:source><P:link href="/no"/></P:source><P:link href="/1"/>'
        "<P:title>T</P:title><P:updated>2026-11-25T10:00:00Z</P:updated></P:entry>"
    )
    for prefix in ("P:", ""):
        body = f"<P:feed>{entry}</P:feed>".replace("P:", prefix).encode()
        assert is_feed(body)
        assert read(body) == [FeedEntry("/1", "T", "2026-11-25T10:00:00Z", "2026-11-25T10:00:00Z")]


def test_entries_of_rdf_are_read() -> None:
    """In RSS 1.0 items are beside the channel."""
    assert urls(b"<rdf:RDF><channel/><item rdf:about='x'><link>/1</link></item></rdf:RDF>") == ["/1"]


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_any_charset_is_read(charset: str) -> None:
    """As the feed declares it."""
    body = f'<?xml version="1.0" encoding="{charset}"?><rss><item><link>/é</link></item></rss>'.encode(charset)
    assert urls(body) == ["/é"]


def test_what_stands_before_an_error_is_read() -> None:
    """Feeds are often broken; names of HTML's need no declaration."""
    named = b"<item><title>&nbsp;&nosuch;</title><link>/2</link></item>"
    assert urls(RSS % (ITEM % 1 + named + b"<item></b>")) == ["/1", "/2"]
    assert urls(b"<rss><item><link>/1</link></item>") == ["/1"]
    for body in (b"", b"<", b"no feed", b"\0\xff" * 99, b"<?xml version='1.0' encoding='rot13'?><rss/>"):
        assert urls(body) == []


def test_entities_do_not_grow() -> None:
    """Only short texts are values; the others are nothing, and nothing outside is fetched."""
    bomb = b'<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + RSS % b"<item><link>&b;</link></item>"
    outside = b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + RSS % b"<item><link>&a;</link></item>"
    assert urls(bomb) == urls(outside) == []
    parameter = b"<!DOCTYPE r [<!ENTITY %% a \"<!ENTITY b 'c'>\"> %%a;]>" + RSS % (ITEM % 1)
    assert urls(parameter) == urls(b'<!DOCTYPE rss SYSTEM "http://a.example/rss.dtd">' + RSS % (ITEM % 1)) == ["/1"]
    longest = b'<!DOCTYPE r [<!ENTITY a "%b">]>' % (b"a" * 1_000)
    [entry] = read(longest + RSS % (b"<item><link>/1</link><title>%b</title></item>" % (b"&a;" * 99_999)))
    assert entry.title == "a" * 500
    assert urls(b"<!DOCTYPE rss [<!ATTLIST item a CDATA 'x'>]>" + RSS % (ITEM % 1)) == ["/1"]


def test_urls_are_relative_to_their_bases() -> None:
    """XML Base: that of the entry is relative to that of the feed; RFC 4287, section 2."""
    body = (
        b'<feed xml:base="http://b.example/x/"><entry xml:base="y/"><link href="1"/></entry>'
        b'<entry><link xml:base="/z/" href="2"/></entry></feed>'
    )
    assert [(entry.url, entry.bases) for entry in read(body)] == [
        ("1", ("http://b.example/x/", "y/")),
        ("2", ("http://b.example/x/", "/z/")),
    ]


def test_titles_of_atom_are_html_only_if_they_say_so() -> None:
    """RFC 4287, section 3.1.1."""
    entry = b'<entry><title type="%b">A &amp;lt; B</title><link href="/1"/></entry>'
    body = b'<feed xmlns="http://www.w3.org/2005/Atom">%b</feed>' % b"".join(
        entry % kind for kind in (b"text", b"html")
    )
    assert [entry.title for entry in read(body)] == ["A &lt; B", "A < B"]


def test_count_and_size_are_bounded() -> None:
    """So many entries, elements and bytes, then no more is read."""
    many = RSS % b"".join(ITEM % n for n in range(5_000))
    assert urls(many, 7) == [f"/{n}" for n in range(7)]
    assert urls(b"<rss>" + b"<a>" * TAGS_MAX + ITEM % 1) == []
    assert urls(b"<rss>" + b" " * (5 << 20) + ITEM % 1) == []
    [long] = read(RSS % (b"<item><title>%s</title><link>/1</link></item>" % (b"x" * 9_999)))
    assert len(long.title) == 500


def test_page_names_its_feeds() -> None:
    """By type and relation, in any case, and not without end."""
    page = (
        '<link rel="alternate" type="application/rss+xml" href="/rss"><link rel=alternate hreflang=de href=/de>'
        "<LINK REL='Home Alternate' TYPE='application/atom+xml; charset=utf-8' HREF='/atom'>"
        "<link rel=stylesheet type=application/rss+xml href=/no><link rel=alternate type=application/rss+xml>"
    )
    assert feeds_of_page(page) == ["/rss", "/atom"]
    assert len(feeds_of_page(page * 99)) <= FEEDS_OF_PAGE_MAX


@pytest.mark.parametrize(
    ("body", "answer"),
    [(RSS, True), (b"<html>rss", False), (b"<rssfeed>", False), (b"<x:feed/>", True), (b" " * 70_000 + RSS, False)],
)
def test_feed_is_told_by_its_root(body: bytes, answer: bool) -> None:
    """Near its begin."""
    assert is_feed(body) is answer
