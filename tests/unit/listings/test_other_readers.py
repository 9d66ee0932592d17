"""Sitemaps and feeds are read as other readers read them: feedparser, ultimate-sitemap-parser, and libxml2."""

from __future__ import annotations

import warnings
from contextlib import suppress

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lxml import etree
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.tree import sitemap_from_str

from bigcrawl.listings import feeds, sitemaps
from tests.support.running.tables import each
from tests.support.sizes import examples
from tests.unit.listings.test_forms import FEEDS, text_in

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import feedparser  # type: ignore[import-untyped]

OWN = "http://www.sitemaps.org/schemas/sitemap/0.9"
IMAGES = "http://www.google.com/schemas/sitemap-image/1.1"
NAMES = st.sampled_from(["loc", "lastmod", "priority", "url", "image", "x"])
TEXTS = st.sampled_from(
    ["http://a.example/", "a]b]]", "a>b", "&amp;", "&#38;",
     "<![CDATA[a&b]]>", "<!--x-->", "<?x <i> ?>", " ", "\u00e9"]
)  # fmt: skip


@st.composite
def elements(draw: st.DrawFn, depth: int = 0) -> str:
    """A well-formed element of any of three namespaces, with prefixes declared where they are used."""
    name, prefix = draw(NAMES), draw(st.sampled_from(["", "", "s:", "i:"]))
    spaces = {"": "", "s:": f' xmlns:s="{OWN}"', "i:": f" xmlns:i='{IMAGES}'"}[prefix]
    default = draw(st.sampled_from(["", "", "", f' xmlns="{OWN}"', f' xmlns="{IMAGES}"']))
    inside = "".join(draw(st.lists(TEXTS if depth > 2 else TEXTS | elements(depth + 1), max_size=4)))
    attributes = draw(st.sampled_from(["", " a='>'", ' b="x y"']))
    tag = f"{prefix}{name}{spaces}{default}{attributes}"
    return f"<{tag}/>" if not inside else f"<{tag}>{inside}</{prefix}{name} >"


def located(root: etree._Element) -> list[str]:
    """The locations of the entries of a sitemap by its namespaces, as libxml2 reads them."""
    space = f"{{{OWN}}}"
    return [
        url for entry in root.iter(f"{space}url") if entry.getparent() is root
        for loc in entry.iterfind(f"{space}loc") if (url := text_in(loc))
    ]  # fmt: skip


@settings(max_examples=examples(1_000))
@given(st.lists(elements(), max_size=5))
def test_sitemaps_are_read_as_by_libxml2(inside: list[str]) -> None:
    """Well-formed ones with any namespaces, in which values and entries are not within values."""
    body = f'<urlset xmlns="{OWN}">{"".join(inside)}</urlset>'.encode()
    root = etree.fromstring(body)
    for one in root.iter("{*}url", "{*}sitemap", "{*}loc", "{*}lastmod", "{*}priority"):
        if etree.QName(one).namespace not in (OWN, IMAGES):
            return  # without a namespace it counts as one of a sitemap here
        if any(etree.QName(above).localname not in ("urlset", "url") for above in one.iterancestors()):
            return
        is_entry = etree.QName(one).localname == "url"
        if is_entry != (one.getparent() is root):
            return  # a value without an entry is read here, and an entry within one begins another
    assert [entry.location for found in sitemaps.sitemap_entries(body, 99) for entry in found] == located(root)


TAGS = st.sampled_from(
    [*"<>/!?&;'\"=]", "<urlset>", "<url>", "</url>", "<loc>", "</loc>", "<![CDATA[", "]]>", "<!--", "-->"]
)
ODD = st.lists(TAGS | st.text(max_size=3), max_size=40).map("".join)


@settings(max_examples=examples(1_000))
@given(ODD, st.sampled_from(["", "<rss>", "<urlset>", "<urlset><url><loc>"]))
def test_no_bytes_break_the_readers(odd: str, head: str) -> None:
    """They end, and what they find is text."""
    body = (head + odd).encode("utf-8", "replace")
    for read in (sitemaps.sitemap_entries, sitemaps.text_sitemap_entries, feeds.feed_entries):
        assert all(isinstance(entry, tuple) for found in read(body, 50) for entry in found)
    assert sitemaps.is_index(body) in (True, False, None)
    assert feeds.is_feed(body) in (True, False)


# Without an &, which feedparser takes for a reference whatever follows it.
URLS = st.from_regex(r"http://a\.example/[a-z0-9/?=;~-]{0,20}", fullmatch=True)
DATES = st.sampled_from(["", "2026-11-20", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00+01:00"])


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(URLS, DATES), min_size=1, max_size=5, unique_by=lambda row: row[0]), st.sampled_from(["", "s:"])
)
def test_sitemaps_are_read_as_by_usp(rows: list[tuple[str, str]], prefix: str) -> None:
    """Locations, and the times of what has a date."""

    def element(name: str, text: str) -> str:
        return f"<{prefix}{name}>{text}</{prefix}{name}>" if text else ""

    inside = "".join(
        element("url", element("loc", url.replace("&", "&amp;")) + element("lastmod", date)) for url, date in rows
    )
    space = f"xmlns:{prefix[:-1]}" if prefix else "xmlns"
    body = f'<?xml version="1.0"?><{prefix}urlset {space}="{OWN}">{inside}</{prefix}urlset>'
    theirs = sitemap_from_str(body)
    assert isinstance(theirs, AbstractSitemap)
    assert not isinstance(theirs, InvalidSitemap)
    ours = [entry for found in sitemaps.sitemap_entries(body.encode(), 99) for entry in found]
    assert [(entry.location, bool(entry.modified)) for entry in ours] == [
        (page.url, page.last_modified is not None) for page in theirs.all_pages()
    ]


# What is read worse there.
UNLIKE = (
    "UTF-8 called UTF-16",
    "title without an end",
    "reference without its end",
    "entity",
    "reference to a control character",
)


@each("row", [row for row in FEEDS if row.name not in UNLIKE], ids=lambda row: row.name)
def test_table_is_read_alike_by_feedparser(row: object) -> None:
    """URLs, and titles but for blanks and the characters that XML does not have."""
    theirs = feedparser.parse(row.body)  # type: ignore[attr-defined]
    ours = [entry for found in feeds.feed_entries(row.body, 99) for entry in found]  # type: ignore[attr-defined]
    assert [entry.url for entry in ours] == [entry.get("link") for entry in theirs.entries]


TITLES = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co"), exclude_characters="<>&;"), min_size=1, max_size=20
)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "iso-8859-1", "koi8-r", "gbk"])


def _is_encoded_twice(text: str) -> bool:
    """Whether feedparser takes it for UTF-8 that was read as Latin-1, and reads it again."""
    with suppress(UnicodeError):
        return text.encode("latin-1").decode("utf-8") != text
    return False


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(URLS, TITLES), min_size=1, max_size=4), st.booleans(), ENCODINGS)
def test_feeds_are_read_as_by_feedparser(rows: list[tuple[str, str]], is_atom: bool, encoding: str) -> None:
    """RSS and Atom, in encodings that Python and the Encoding Standard read alike."""
    known = [(url, title.encode(encoding, "ignore").decode(encoding).strip() or "T") for url, title in rows]
    assume(not any(_is_encoded_twice(title) for _, title in known))
    escaped = [(url.replace("&", "&amp;"), title) for url, title in known]
    if is_atom:
        inside = "".join(f"<entry><title>{title}</title><link href='{url}'/></entry>" for url, title in escaped)
        text = f'<feed xmlns="http://www.w3.org/2005/Atom">{inside}</feed>'
    else:
        inside = "".join(f"<item><title>{title}</title><link>{url}</link></item>" for url, title in escaped)
        text = f"<rss version='2.0'><channel>{inside}</channel></rss>"
    body = f"<?xml version='1.0' encoding='{encoding}'?>{text}".encode(encoding)
    theirs = [(entry.link, " ".join(entry.title.split())) for entry in feedparser.parse(body).entries]
    ours = [(entry.url, entry.title) for found in feeds.feed_entries(body, 99) for entry in found]
    assert ours == theirs == [(url, " ".join(title.split())) for url, title in known]


def test_many_entities_cost_little() -> None:
    """A million laughs are a text of some characters."""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{laughs}]><urlset><url><loc>&l9;&l0;</loc></url></urlset>'.encode()
    assert [entry.location for found in sitemaps.sitemap_entries(body, 9) for entry in found] == ["ha"]
