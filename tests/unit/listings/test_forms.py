"""Sitemaps and feeds in the forms that sites write them; each row has what must be listed, and its source."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING, NamedTuple

import pytest
from lxml import etree

from bigcrawl.listings import elements, feeds, sitemaps
from tests.support.costs.proportion import assert_costs
from tests.support.running.tables import each

if TYPE_CHECKING:
    from collections.abc import Callable

OWN = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
IMAGES = b"http://www.google.com/schemas/sitemap-image/1.1"
ONE, TWO = "http://a.example/1", "http://a.example/2"
E, _MIR = "http://a.example/\u00e9", "\u043c\u0438\u0440"
MIR = "http://a.example/" + _MIR


class Row(NamedTuple):
    name: str
    body: bytes
    urls: list[str]
    source: str
    is_well_formed: bool = True


def _bad(name: str, body: bytes, urls: list[str], source: str) -> Row:
    """A row that a parser of XML refuses."""
    return Row(name, body, urls, source, is_well_formed=False)


def _set(inside: bytes, root: bytes = OWN) -> bytes:
    return b"<urlset %b>%b</urlset>" % (root, inside)


def _coded(codec: str, label: str, text: str, mark: bytes = b"") -> bytes:
    head = f"<?xml version='1.0' encoding='{label}'?>"
    return mark + f"{head}<urlset><url><loc>http://a.example/{text}</loc></url></urlset>".encode(codec)


_OLD = b'xmlns="http://www.google.com/schemas/sitemap/0.84"'
_I, _IMAGE = OWN + b' xmlns:i="%b"' % IMAGES, OWN + b' xmlns:image="%b"' % IMAGES
_QUOTED = OWN + b"\nxmlns:i = '%b'" % IMAGES
_VIDEOS = OWN + b' xmlns:v="http://www.google.com/schemas/sitemap-video/1.1"'
_XHTML = OWN + b' xmlns:x="http://www.w3.org/1999/xhtml"'
_OTHER, _USUAL = b"<i:image><i:loc>/no</i:loc></i:image>", b"<image:image><image:loc>/no</image:loc></image:image>"
_SECOND = b"<url><loc>http://a.example/2</loc></url>"
_OWN_IMAGE = b'<image xmlns="%b"><loc>/no</loc></image>' % IMAGES
_OWN_LINK = b'<link xmlns="http://www.w3.org/1999/xhtml" href="/de"/>'
_LINK = b'<x:link rel="alternate" hreflang="de" href="/de"/>'
_VIDEO = b"<v:video><v:content_loc>/no</v:content_loc></v:video>"
_PREFIXED = b'<s:urlset xmlns:s="%b"><s:url><s:loc>http://a.example/1</s:loc></s:url></s:urlset>' % OWN[7:-1]
_NO_END = b"<url><loc>http://a.example/1</url>"
_NO_LOC = b"<sitemap>\nhttp://a.example/1?a&amp;b\n</sitemap><sitemap><loc>http://a.example/2</loc></sitemap>"
_QUERY = b"<url><loc>http://a.example/1?a=1&b=2&copy=3</loc></url>"
_NUMBERS = b"<url><loc>http://a.example/1?a&#38;b&#x26;c</loc></url>"
_LITERAL = b"<url><loc>\n <![CDATA[ http://a.example/1?a&b ]]>\n</loc></url>"
_GB = "Encoding Standard: gb2312 is gbk"
_FIRST = "XML 1.0, appendix F"
_LOC = b"<url><loc>http://a.example/1</loc>%b</url>"
_LOC_OF = b"<url><loc>http://a.example/1%b</loc></url>"
_SELF = b'<j:image xmlns:j="%b"><j:loc>/no</j:loc></j:image>' % IMAGES
_TURNED = b'<s:urlset xmlns:s="%b" xmlns="%b"><s:url><image><loc>/no</loc></image>' % (OWN[7:-1], IMAGES)
_TURNED += b"<s:loc>http://a.example/1</s:loc></s:url></s:urlset>"
_USUAL_LOC = b"<image:image><loc>/no</loc></image:image>"
_ENTITY = b'<!DOCTYPE urlset [<!ENTITY site "http://a.example">]>'
_NAMES = "XML Namespaces 6.2: an element is of the namespace in force"
_DECLARED = "XML 1.0, 4.3.3: the declared encoding"
_SITE = "sitemaps.org: protocol"

SITEMAPS = (
    Row("namespace", _set(_LOC % b""), [ONE], _SITE),
    Row("no namespace", _set(_LOC % b"", b""), [ONE], "scrapy, advertools read it"),
    Row("old namespace", _set(_LOC % b"", _OLD), [ONE], "crawler-commons#174"),
    Row("prefix", _PREFIXED, [ONE], _NAMES),
    Row("images", _set(_LOC % _USUAL, _IMAGE), [ONE], _NAMES),
    Row("images by another prefix", _set(_LOC % _OTHER, _I), [ONE], _NAMES),
    Row("images in single quotes", _set(_LOC % _OTHER, _QUOTED), [ONE], _NAMES),
    Row("images by their own default", _set(_LOC % _OWN_IMAGE), [ONE], _NAMES),
    _bad("images without a declaration", _set(_LOC % _USUAL), [ONE], "crawler-commons#210"),
    Row("videos", _set(_LOC % _VIDEO, _VIDEOS), [ONE], _NAMES),
    Row("alternates", _set(_LOC % _LINK + _SECOND, _XHTML), [ONE, TWO], "Google: each language has an entry"),
    Row("alternates by their own default", _set(_LOC % _OWN_LINK + _SECOND), [ONE, TWO], _NAMES),
    Row("blanks first", b"\n \n<!-- made -->" + _set(_LOC % b""), [ONE], "crawler-commons#144"),
    Row("mark first", BOM_UTF8 + _set(_LOC % b""), [ONE], _FIRST),
    Row("CDATA", _set(_LITERAL), [ONE + "?a&b"], "browsertrix#578"),
    _bad("bare ampersand", _set(_QUERY), [ONE + "?a=1&b=2&copy=3"], "lenient, as Google"),
    Row("references", _set(_NUMBERS), [ONE + "?a&b&c"], "XML 1.0, 4.1"),
    Row("comment", _set(b"<!--<url><loc>/no</loc></url>-->" + _LOC % b""), [ONE], "XML 1.0, 2.5"),
    Row("attribute", _set(b'<url id="1"><loc  lang="x" >http://a.example/1</loc></url>'), [ONE], "XML 1.0, 3.1"),
    _bad("location without an end", _set(_NO_END + _SECOND), [ONE, TWO], "lenient"),
    _bad("cut", _set(_LOC % b"")[:-9] + b"<url><loc>http://a.example/2</loc>", [ONE, TWO], "lenient"),
    Row("brackets", _set(_LOC_OF % b"?a[]=1&amp;b[2]=3"), [ONE + "?a[]=1&b[2]=3"], "XML 1.0, 2.4: ] is text"),
    Row("greater than", _set(_LOC_OF % b"?a>b"), [ONE + "?a>b"], "XML 1.0, 2.4"),
    Row("CDATA and text", _set(_LOC_OF % b"<![CDATA[?a&b]]>&amp;c"), [ONE + "?a&b&c"], "XML 1.0, 2.7"),
    Row("comment in a location", _set(_LOC_OF % b"<!-- x -->"), [ONE], "XML 1.0, 2.5"),
    Row("tag in a location", _set(_LOC_OF % b"<i>?x</i>"), [ONE + "?x"], "XPath, string value of an element"),
    Row("instruction", _set(b"<?x <url><loc>/no</loc></url> ?>" + _LOC % b""), [ONE], "XML 1.0, 2.6"),
    Row("greater than in a tag", _set(b'<url x="a>b"><loc>http://a.example/1</loc></url>'), [ONE], "XML 1.0, 2.3"),
    Row("entity", _ENTITY + _set(b"<url><loc>&site;/1</loc></url>"), [ONE], "XML 1.0, 4.4: internal entities"),
    Row("images with a declaration of their own", _set(_LOC % _SELF), [ONE], _NAMES),
    Row("images by default, pages by prefix", _TURNED, [ONE], _NAMES),
    Row("location of an image, by the default", _set(_LOC % _USUAL_LOC, _IMAGE), [ONE], "sitemaps.org: url/loc"),
    Row("comment with another root", b"<!-- <sitemapindex> -->" + _set(_LOC % b""), [ONE], "XML 1.0, 2.5"),
    Row("doctype", b'<!DOCTYPE urlset SYSTEM "x.dtd">' + _set(_LOC % b""), [ONE], "XML 1.0, 2.8"),
    Row("empty locations", _set(b"<url><loc/></url><url><loc></loc></url>" + _LOC % b""), [ONE], _SITE),
    _bad("page around it", b"<br />\n<b>Warning</b>: <?xml version='1.0'?>" + _set(_LOC % b""), [ONE], "lenient"),
    _bad("two documents", _set(_LOC % b"") + _set(_SECOND), [ONE, TWO], "lenient"),
    _bad("control characters", _set(_LOC_OF % b"\0\x0b"), [ONE], "XML 1.0, 2.2: no such characters"),
    _bad("entry without an end", _set(b"<url><loc>http://a.example/1</loc>" + _SECOND), [ONE, TWO], "lenient"),
    _bad("value without an end", _set(_LOC_OF % b"<lastmod>2026</lastmod>" + _SECOND), [ONE, TWO], "lenient"),
    _bad("end without a begin", _set(b"</x></urlset>" + _LOC % b"</image:image>"), [ONE], "lenient"),
    _bad("bare less than", _set(_LOC_OF % b"?a<3"), [ONE + "?a<3"], "lenient"),
    _bad("declaration without its end", b"<?xml version='1.0'>" + _set(_LOC % b""), [ONE], "lenient"),
    _bad("attribute without quotes", _set(b"<url id=1><loc x=y>http://a.example/1</loc></url>"), [ONE], "lenient"),
    Row("index", b"<sitemapindex><sitemap><loc>http://a.example/1</loc></sitemap></sitemapindex>", [ONE], _SITE),
    _bad("index without locations", b"<sitemapindex>%b</sitemapindex>" % _NO_LOC, [ONE + "?a&b", TWO], "commons#29"),
    Row("UTF-16", _coded("utf-16", "utf-16", "\u00e9"), [E], _FIRST),
    Row("UTF-16 without a mark", _coded("utf-16-le", "utf-16", "\u00e9"), [E], _FIRST),
    Row("UTF-16 from the other end", _coded("utf-16-be", "utf-16", "\u00e9"), [E], _FIRST),
    Row("Latin-1", _coded("latin-1", "ISO-8859-1", "caf\u00e9"), ["http://a.example/caf\u00e9"], _DECLARED),
    Row("windows-1251", _coded("cp1251", "windows-1251", _MIR), [MIR], _DECLARED),
    Row("GBK", _coded("gbk", "GB2312", "\u4f60\u597d"), ["http://a.example/\u4f60\u597d"], _GB),
    Row("Shift_JIS", _coded("shift_jis", "Shift_JIS", "\u8868\u30bd"), ["http://a.example/\u8868\u30bd"], _DECLARED),
    Row("EUC-KR", _coded("euc_kr", "euc-kr", "\ud55c"), ["http://a.example/\ud55c"], _DECLARED),
    _bad("UTF-8 called UTF-16", _coded("utf-8", "utf-16", "\u00e9"), [E], "what is read as ASCII is not UTF-16"),
    _bad("marked UTF-8 called Latin-1", _coded("utf-8", "latin1", "\u00e9", BOM_UTF8), [E], "RFC 7303: the mark"),
    _bad("encoding of no text", _coded("utf-8", "punycode", "\u00e9"), [E], "none of the Encoding Standard"),
)  # fmt: skip


def listed(body: bytes) -> list[str]:
    assert sitemaps.is_index(body) is not None
    return [entry.location for found in sitemaps.sitemap_entries(body, 100) for entry in found]


def text_in(element: etree._Element) -> str:
    """The string value by XPath: without comments and instructions."""
    return str(element.xpath("string()")).strip()


@each("row", SITEMAPS, ids=lambda row: row.name)
def test_sitemap_is_read_as_it_is_meant(row: Row) -> None:
    """By its namespaces and encoding, well-formed or not; what is well-formed lists the same to a parser of XML."""
    assert listed(row.body) == row.urls
    if row.is_well_formed:
        root = etree.fromstring(row.body.lstrip())
        entry = "sitemap" if "index" in etree.QName(root).localname else "url"
        space = f"{{{name}}}" if (name := etree.QName(root).namespace) else ""
        assert [url for loc in root.iterfind(f"{space}{entry}/{space}loc") if (url := text_in(loc))] == row.urls


LISTS = {
    "lines": (b"http://a.example/1\nhttp://a.example/2\n", [ONE, TWO]),
    "mark and CRLF": (BOM_UTF8 + b"http://a.example/1\r\nhttp://a.example/2", [ONE, TWO]),
    "CR": (b"http://a.example/1\rhttp://a.example/2\r", [ONE, TWO]),
    "blanks": (b"\n  http://a.example/1  \n\n\thttp://a.example/2\t\n", [ONE, TWO]),
    "other lines": (b"http://a.example/1\n# note\nmailto:x\nHTTP://a.example/2", [ONE, "HTTP://a.example/2"]),
    "one": (b"http://a.example/1", [ONE]),
    "slices": (
        b"http://a.example/1\n" * 9_000 + b"http://a.example/2",
        [ONE] * 9_000 + [TWO],
    ),
}


@pytest.mark.parametrize(("body", "urls"), LISTS.values(), ids=LISTS)
def test_list_of_urls_is_a_sitemap(body: bytes, urls: list[str]) -> None:
    """sitemaps.org: one URL a line, and nothing else."""
    assert sitemaps.is_list(body)
    assert [entry.location for found in sitemaps.text_sitemap_entries(body, 10_000) for entry in found] == urls
    assert sum(map(len, sitemaps.text_sitemap_entries(body, 1))) == 1


def test_other_text_is_no_list_of_urls() -> None:
    """A page, a robots.txt, words before or behind a URL."""
    for body in (
        b"",
        b"<html>",
        b"User-agent: *\n",
        b"see http://a.example/",
        b"http://a.example/ is down\n",
        b"http://",
    ):
        assert not sitemaps.is_list(body)
    long = b"http://a.example/" + b"x" * sitemaps.LOCATION_BYTES_MAX
    first, second = (
        entry for found in sitemaps.text_sitemap_entries(long + b"\n" + ONE.encode(), 9) for entry in found
    )
    assert (first.is_too_long, second.location) == (True, ONE)


_RSS = b"<rss><channel><item><link>http://a.example/1</link><title>%b</title></item></channel></rss>"
_NO_ITEM_END = _RSS.replace(b"</item></channel></rss>", b"")
_GOOD = "XML 1.0: well-formed"
_LENIENT = "feedparser: read all the same"


def _feed(codec: str, label: str, title: str) -> bytes:
    head = f"<?xml version='1.0' encoding='{label}'?>"
    item = f"<item><link>http://a.example/1</link><title>{title}</title></item>"
    return f"{head}<rss><channel>{item}</channel></rss>".encode(codec)


FEEDS = (
    Row("plain", _RSS % b"T", ["T"], _GOOD),
    _bad("blank line first", b"\n<?xml version='1.0'?>" + _RSS % b"T", ["T"], _LENIENT),
    Row("blanks and a mark", BOM_UTF8 + b"<?xml version='1.0'?>" + _RSS % b"T", ["T"], _GOOD),
    _bad("bare ampersand", _RSS % b"A & B", ["A & B"], _LENIENT),
    _bad("ampersand in an address", _RSS % b"T?a=1&b=2", ["T?a=1&b=2"], _LENIENT),
    _bad("ampersand at the end", _RSS % b"A &", ["A &"], _LENIENT),
    Row("CDATA with ampersands", _RSS % b"<![CDATA[A & B &amp;amp; C]]>", ["A & B &amp; C"], "title is HTML"),
    _bad("ampersands around CDATA", _RSS % b"A & <![CDATA[B & ]]>C & D", ["A & B & C & D"], _LENIENT),
    _bad("end of CDATA alone", _RSS % b"A ]]> & B ]]]>", ["A ]]> & B ]]]>"], _LENIENT),
    _bad("name of HTML", _RSS % b"A&nbsp;B&eacute;", ["A B\u00e9"], _LENIENT),
    _bad("control characters", _RSS % b"A\x00\x08\x1bB", ["AB"], _LENIENT),
    Row("references", _RSS % b"&#65;&#x42;", ["AB"], _GOOD),
    _bad("broken UTF-8", _RSS % b"A\xe9B", ["A\ufffdB"], "Encoding Standard: replacement"),
    Row("GBK", _feed("gbk", "gbk", "\u4f60\u597d"), ["\u4f60\u597d"], _DECLARED),
    Row("GB2312", _feed("gbk", "gb2312", "\u9555"), ["\u9555"], _GB),
    Row("GB18030", _feed("gb18030", "GB18030", "\u3400"), ["\u3400"], _DECLARED),
    Row("Big5", _feed("big5", "Big5", "\u529f"), ["\u529f"], _DECLARED),
    Row("Shift_JIS", _feed("shift_jis", "Shift_JIS", "\u8868\u30bd"), ["\u8868\u30bd"], _DECLARED),
    Row("EUC-JP", _feed("euc_jp", "EUC-JP", "\u65e5\u672c"), ["\u65e5\u672c"], _DECLARED),
    Row("ISO-2022-JP", _feed("iso2022_jp", "ISO-2022-JP", "\u65e5\u672c"), ["\u65e5\u672c"], _DECLARED),
    Row("EUC-KR", _feed("euc_kr", "EUC-KR", "\ud55c"), ["\ud55c"], _DECLARED),
    Row("KOI8-R", _feed("koi8_r", "KOI8-R", _MIR), [_MIR], _DECLARED),
    Row("windows-1251", _feed("cp1251", "windows-1251", _MIR), [_MIR], _DECLARED),
    Row("Latin-1", _feed("latin-1", "ISO-8859-1", "caf\u00e9"), ["caf\u00e9"], _DECLARED),
    Row("UTF-16", _feed("utf-16", "utf-16", "\u00e9"), ["\u00e9"], _FIRST),
    Row("UTF-16 without a mark", _feed("utf-16-le", "utf-16", "\u00e9"), ["\u00e9"], _FIRST),
    _bad("unknown encoding", _feed("utf-8", "klingon", "\u00e9"), ["\u00e9"], _LENIENT),
    _bad("UTF-8 called UTF-16", _feed("utf-8", "utf-16", "\u00e9"), ["\u00e9"], _LENIENT),
    Row("entity", b'<!DOCTYPE rss [<!ENTITY c "ACME">]>' + _RSS % b"T &c;", ["T ACME"], "XML 1.0, 4.4"),
    Row("doctype", b'<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "x.dtd">' + _RSS % b"T", ["T"], _GOOD),
    Row("two literals", _RSS % b"<![CDATA[a]]]]><![CDATA[>b]]>", ["a]]>b"], "XML 1.0, 2.7"),
    Row("undeclared prefix", _RSS % b"T</title><x:y>z</x:y><title>U", ["T"], _LENIENT),
    _bad("tags without an end", _RSS % b"T</title><x>a<br>b<p>c</x><y><title>U", ["T"], _LENIENT),
    _bad("crossed tags", _RSS % b"T</title><b>a<i>b</b>c</i><title>", ["T"], _LENIENT),
    _bad("item without an end", _NO_ITEM_END % b"T" + _RSS % b"U", ["T", "U"], _LENIENT),
    _bad("title without an end", _RSS.replace(b"</title>", b"") % b"T", ["T"], "lenient; feedparser loses it"),
    _bad("bare less than", _RSS % b"1 < 2 <3", ["1 < 2 <3"], _LENIENT),
    _bad("attribute without quotes", _RSS % b"T</title><a b=c>d</a><title e=f>U", ["T"], _LENIENT),
    _bad("attribute twice", _RSS % b"T</title><a b='c' b='d'/><title>U", ["T"], _LENIENT),
    _bad("dashes in a comment", _RSS % b"T</title><!-- a -- b --><title>U", ["T"], _LENIENT),
    _bad("two declarations", b"<?xml version='1.0'?><?xml version='1.0'?>" + _RSS % b"T", ["T"], _LENIENT),
    _bad("declaration without its end", b"<?xml version='1.0'>" + _RSS % b"T", ["T"], _LENIENT),
    _bad("two feeds", _RSS % b"T" + _RSS % b"U", ["T", "U"], _LENIENT),
    _bad("a warning before", b"<br />\n<b>Warning</b>: x<br />\n" + _RSS % b"T", ["T"], _LENIENT),
    _bad("reference without its end", _RSS % b"A&hellip; &copy B", ["A\u2026 \u00a9 B"], _LENIENT),
    _bad("reference to a control character", _RSS % b"A&#1;B", ["AB"], "XML 1.0, 2.2"),
    _bad("cut", (_RSS % b"T")[:-16], ["T"], _LENIENT),
    _bad("cut in a tag", _RSS % b"T" + b"<item><link>http://a.example/1</link><descr", ["T", ""], _LENIENT),
    _bad("what is behind", _RSS % b"T" + b"<p>ad", ["T"], _LENIENT),
)  # fmt: skip


@each("row", FEEDS, ids=lambda row: row.name)
def test_feed_is_read_as_it_is_meant(row: Row) -> None:
    """Well-formed or not; what is well-formed says the same to a parser of XML."""
    assert feeds.is_feed(row.body)
    found = [entry for part in feeds.feed_entries(row.body, 9) for entry in part]
    assert [(entry.url, entry.title) for entry in found] == [(ONE, title) for title in row.urls]
    if row.is_well_formed and "CDATA" not in row.name:
        try:
            root = etree.fromstring(row.body)
        except etree.XMLSyntaxError:
            return  # an encoding that libxml2 does not have
        assert [title.text for title in root.iter("title")] == row.urls


@pytest.mark.parametrize("size", [1, 7, 50])
@each("row", FEEDS, ids=lambda row: row.name)
def test_feed_in_slices_is_the_feed(row: Row, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they are cut."""
    monkeypatch.setattr(elements, "SLICE_BYTES", size)
    found = [entry for part in feeds.feed_entries(row.body, 9) for entry in part]
    assert [(entry.url, entry.title) for entry in found] == [(ONE, title) for title in row.urls]


MANY = 4 << 20
COSTLY: dict[str, tuple[Callable[[bytes, int], object], bytes, bytes]] = {
    "elements without an end": (sitemaps.sitemap_entries, b"<urlset>", b'<a xmlns="x">'),
    "tags without an end": (sitemaps.sitemap_entries, b"<urlset>", b"<a xmlns="),
    "blanks of a tag": (sitemaps.sitemap_entries, b"<urlset>", b"<url " + b" " * 5_000),
    "text in entries": (sitemaps.sitemap_entries, b"<urlset>", b"<url>" + b" " * 5_000),
    "one long text": (sitemaps.sitemap_entries, b"<urlset><url>http:", b"x"),
    "prefixes": (sitemaps.sitemap_entries, b"<urlset", b" xmlns:a=''"),
    "declaration": (sitemaps.sitemap_entries, b"<?xml", b" encoding"),
    "lines": (sitemaps.text_sitemap_entries, b"http://a.example/\n", b"\n"),
    "blank lines": (sitemaps.text_sitemap_entries, b"http://a.example/\n", b" \t"),
    "short lines": (sitemaps.text_sitemap_entries, b"http://a.example/\n", b"http://\n"),
    "ampersands": (feeds.feed_entries, b"<rss><item><title>", b"&"),
    "brackets": (feeds.feed_entries, b"<rss><item><title>", b"]"),
    "literals": (feeds.feed_entries, b"<rss><item><title>", b"<![CDATA[]]>"),
    "controls": (feeds.feed_entries, b"<rss><item><title>", b"\x01a"),
}


@pytest.mark.parametrize("kind", COSTLY)
def test_costly_listing_costs_in_proportion_to_its_size(kind: str) -> None:
    """Eight times as much costs some eight times as much, and not sixty-four."""
    read, head, unit = COSTLY[kind]
    many, few = (head + unit * (size // len(unit)) for size in (MANY, MANY // 8))
    assert_costs(24, lambda: list(read(many, 50_000)), lambda: list(read(few, 50_000)))  # type: ignore[call-overload]
