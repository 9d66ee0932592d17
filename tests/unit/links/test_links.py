from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import HtmlResponse

from bigcrawl.exceptions import ContractError, RequestNotStorableError
from bigcrawl.links import (
    ANCHORS_MAX,
    METAS_MAX,
    LeftOut,
    Links,
    PageLimits,
    extract_links,
    page_text,
    read_page,
    set_page_limits,
)
from tests.support.running.tables import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("twin")

URL = "http://site.example/dir/page.html?q"


@dataclass
class StoredPage:
    body: bytes
    url: str = URL
    headers: dict[str, bytes] = field(default_factory=dict)


def links_of(html: str | bytes, charset: str | None = None, url: str = URL) -> list[str]:
    """Return the links of a page whose Content-Type names `charset`."""
    headers = {"Content-Type": f"text/html; charset={charset}".encode()} if charset else {}
    return extract_links(StoredPage(html.encode() if isinstance(html, str) else html, url, headers))


def test_links_come_in_document_order_each_once() -> None:
    """Links of all kinds of elements, mixed, in the order of the page; a repeated one at its first place."""
    assert links_of(
        "<a href=/1>x</a><map><area href=2></map><iframe src=/3></iframe><p><A HREF='HTTP://other.example#f'>"
        "</a><a href=/dir/2#x>again</a><a href=../4 rel=noopener>y</a>"
    ) == [
        "http://site.example/1",
        "http://site.example/dir/2",
        "http://site.example/3",
        "http://other.example/",
        "http://site.example/4",
    ]


def test_links_that_are_not_to_be_followed_are_told_apart() -> None:
    """By rel, in any case and among other words; one that is linked to without it as well is followed."""
    html = (
        "<a href=/1>x</a><a href=/2 rel='noopener NoFollow'>x</a><area rel=nofollow href=/3><a rel=nofollowing href=/4>"
        "<a href=/5 rel=nofollow></a><a href=/5#x></a><a rel=nofollow></a><a rel=nofollow href=mailto:x@y.example></a>"
        "<a href=/6 rel></a>"
    )
    found = read_page(StoredPage(html.encode()))
    assert found.urls == [f"http://site.example/{path}" for path in ("1", "4", "5", "6")]
    assert found.nofollow == [f"http://site.example/{path}" for path in ("2", "3")]
    assert links_of(html) == found.urls


def test_what_a_page_asks_of_robots_comes_with_its_links() -> None:
    """Meta elements with a word that means something, of any name but those that every page has; its canonical URL."""
    html = (
        "<meta name=Robots content='NOINDEX, nofollow'><meta name=description content='we have none'>"
        "<meta name=examplebot content=none><meta name=x content=y><meta property=og:x content=nofollow>"
        "<link rel='alternate Canonical' href='../c?b=1#f'><link rel=canonical href=/second><a href=/1>x</a>"
    )
    links = Links.from_page(StoredPage(html.encode()))
    assert links.metas == (("robots", "NOINDEX, nofollow"), ("examplebot", "none"))
    assert links.page_canonical == "http://site.example/c?b=1"
    assert links.urls == ["http://site.example/1"]
    assert links_of(html) == []


def test_meta_elements_of_one_page_are_bounded() -> None:
    """A page of a million of them brings a few."""
    links = Links.from_page(StoredPage(b"<meta name=robots content=noindex>" * 1_000))
    assert len(links.metas) == METAS_MAX


def test_frames_of_a_frameset_are_links() -> None:
    """A page of frames leads to its frames."""
    html = "<frameset><frame src=a><frame src=b></frameset>"
    assert links_of(html) == ["http://site.example/dir/a", "http://site.example/dir/b"]


@each(
    "href",
    [
        *(
            "",
            "  ",
            "#",
            "#top",
            " #top",
            "javascript:void(0)",
            " JavaScript:x",
            "mailto:a@b.example",
            "tel:1",
        ),
        *(
            "data:text/html,x",
            "ftp://site.example/",
            "about:blank",
            "http://",
            "http://[",
            "http://a b/",
            "x:y",
        ),
    ],
)
def test_what_leads_to_no_page_is_left_out(href: str) -> None:
    """Fragments of the page itself, other schemes and junk are no links; what follows them is."""
    assert links_of(f'<a href="{href}">x</a><a href>y</a><a name=z>z</a><a href=/ok>') == ["http://site.example/ok"]


@pytest.mark.parametrize(
    ("href", "url"),
    [
        (" \n /a\t\n", "http://site.example/a"),
        ("/a\tb\r\nc", "http://site.example/abc"),
        ("/a&amp;b?c&#61;d&copy", "http://site.example/a&b?c=d%C2%A9"),
        ("?", "http://site.example/dir/page.html?"),
        ("//other.example/x", "http://other.example/x"),
        ("\\\\other.example\\x", "http://other.example/x"),
        ("d", "http://site.example/dir/d"),
        ("mailto", "http://site.example/dir/mailto"),
        ("javascript.html", "http://site.example/dir/javascript.html"),
    ],
)
def test_references_are_read_as_browsers_do(href: str, url: str) -> None:
    """White space around, tabs and line ends within, character references, backslashes."""
    assert links_of(f'<a href="{href}">x</a>') == [url]


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("<base href=/other/>", "http://site.example/other/x"),
        (
            "<base target=_top><base href='http://base.example/b/c'><base href=/late/>",
            "http://base.example/b/x",
        ),
        ("<base href='javascript:1'>", "http://site.example/dir/x"),
        ("<base href='data:text/html,'>", "http://site.example/dir/x"),
        ("<base href='http://['>", "http://site.example/dir/x"),
        ("<base href=''>", "http://site.example/dir/x"),
    ],
)
def test_first_base_with_a_href_is_what_references_are_relative_to(base: str, url: str) -> None:
    """Also for links before it; a base that is no web URL counts as none."""
    assert links_of(f"<head>{base}</head><a href=x>") == [url]
    assert links_of(f"<a href=x></a><p>{base}") == [url]


@pytest.mark.parametrize(
    ("meta", "url"),
    [
        ("<meta http-equiv=refresh content='0; url=x'>", "http://site.example/dir/x"),
        ("<META HTTP-EQUIV=ReFresh CONTENT=\"600;URL='http://other.example'\">", "http://other.example/"),
        ("<meta content='3,/&eacute;?a&amp;b' name=x http-equiv='refresh'>", "http://site.example/%C3%A9?a&b"),
        ("<base href=/b/><meta http-equiv=&#114;efresh content='0 x'>", "http://site.example/b/x"),
        ("<noscript><meta http-equiv=refresh content='0;/plain.html'></noscript>", "http://site.example/plain.html"),
    ],
)
def test_where_a_page_refreshes_to_is_a_link(meta: str, url: str) -> None:
    """In its place among the others, read as browsers do, in any spelling and after any delay."""
    assert links_of(f"<head>{meta}</head><a href=/last>") == [url, "http://site.example/last"]


@each(
    "meta",
    [
        *("<meta http-equiv=refresh>", "<meta http-equiv=refresh content>", "<meta http-equiv=refresh content=30>"),
        *("<meta http-equiv=refresh content='0;url='>", "<meta http-equiv=refresh content='0;url=#top'>"),
        *("<meta http-equiv=refresh content='0;javascript:x'>", "<meta http-equiv=refresh content='/x'>"),
        *("<meta http-equiv=refreshed content='0;x'>", "<meta name=refresh content='0;x'>", "<meta content='0;x'>"),
        *("<meta http-equiv=' refresh' content='0;x'>", "<!--<meta http-equiv=refresh content='0;x'>-->"),
    ],
)
def test_other_meta_elements_are_no_links(meta: str) -> None:
    """A page that loads itself again, that says no delay, or whose meta element is about something else."""
    assert links_of(f"{meta}<a href=/ok>") == ["http://site.example/ok"]


def test_noscript_is_read_and_template_is_not() -> None:
    """What a browser without scripts shows counts; what no browser shows does not."""
    html = "<noscript><a href=/n>x</a></noscript><template><a href=/t>x</a></template><!-- <a href=/c> -->"
    assert links_of(html) == ["http://site.example/n"]


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("<a href='/\u00e9?\u00e9'>\u00e9".encode(), "utf-8"),
        ("<a href='/\u00e9?\u00e9'>\u00e9".encode(), None),
        ("<meta charset=latin1><a href='/\u00e9?\u00e9'>".encode(), "utf-8"),
        ("\ufeff<meta charset=latin1><a href='/\u00e9?\u00e9'>".encode(), "latin1"),
        ("\ufeff<a href='/\u00e9?\u00e9'>".encode("utf-16-le"), None),
        ("<a href='/\u00e9?\u00e9'>".encode("utf-16-be"), "utf-16be"),
        ("<meta charset=utf-16><a href='/\u00e9?\u00e9'>".encode(), None),
        ("<a href='/\u00e9?\u00e9'>".encode(), "no-such-thing"),
        (b"<a href='/&eacute;?&#233;'>", "utf-8"),
    ],
)
def test_utf_8_and_utf_16_pages_escape_in_utf_8(body: bytes, charset: str | None) -> None:
    """A byte-order mark wins over the header, the header over the meta tag, and no word means UTF-8."""
    assert links_of(body, charset) == ["http://site.example/%C3%A9?%C3%A9"]


@pytest.mark.parametrize(
    ("body", "charset", "query"),
    [
        ("<a href='/\u00e9?\u00e9#\u00e9'>".encode("latin1"), "ISO-8859-1", "%E9"),
        ("<meta charset=windows-1252><a href='/\u00e9?\u00e9'>".encode("cp1252"), None, "%E9"),
        ("<a href='/\u00e9?\u00e9'>".encode("latin1"), None, "%E9"),
        (b"<meta charset=windows-1252><a href='/&eacute;?&eacute;'>", None, "%E9"),
        (b"<a href='/&eacute;?&eacute;&#x448;'>", "windows-1252", "%E9%26%231096%3B"),
        ("<a href='/\u00e9?\u0448'>".encode("gb18030"), "gb2312", "%A7%EA"),
        ("<a href='/\u00e9?\u4e02'>".encode("gb18030"), "gbk", "%81@"),
    ],
)
def test_queries_escape_in_the_encoding_of_the_page(body: bytes, charset: str | None, query: str) -> None:
    """Paths are UTF-8 always; what the encoding lacks becomes an escaped character reference."""
    assert links_of(body, charset) == [f"http://site.example/%C3%A9?{query}"]


@pytest.mark.parametrize("label", ["rot13", "idna", "punycode", "base64", "undefined", "utf-7", "unicode_escape"])
def test_codecs_that_are_no_encoding_of_the_web_are_not_used(label: str) -> None:
    """A page cannot choose a codec that fails, runs for ever or changes its markup."""
    html = f"<meta charset={label}><a href='/\u00e9'>" + "\u00e9" * 3_000
    assert links_of(html) == ["http://site.example/%C3%A9"]
    assert links_of(html, label) == ["http://site.example/%C3%A9"]


@pytest.mark.parametrize(
    "body",
    [b"", b"\0" * 100, b"\x89PNG\r\n\x1a\n\xff\xfe", b"<" * 10_000, b"<div>" * 10_000, b"\xff\xfe\xff"],
)
def test_hostile_and_empty_bodies_have_no_links(body: bytes) -> None:
    """Whatever the bytes are, the answer is a list."""
    assert links_of(body) == []


def test_a_page_that_has_no_web_url_has_no_links() -> None:
    """Without a URL to join with nothing is a link."""
    assert links_of("<a href=/x><a href=http://a.example/>", url="about:blank") == []


def test_tags_choose_the_elements_and_unknown_ones_are_an_error() -> None:
    """Only the elements asked for are read; an element without a known attribute is the caller's bug."""
    page = StoredPage(b"<base href=/b/><a href=x></a><iframe src=y></iframe>")
    assert extract_links(page, tags=["iframe"]) == ["http://site.example/b/y"]
    refreshing = StoredPage(b"<meta http-equiv=refresh content='0;x'><a href=y></a>")
    assert extract_links(refreshing, tags=["a"]) == ["http://site.example/dir/y"]
    assert extract_links(refreshing, tags=["meta"]) == ["http://site.example/dir/x"]
    with pytest.raises(ContractError, match="blink"):
        extract_links(page, tags=["blink"])


def test_scrapys_responses_are_pages() -> None:
    """An HtmlResponse needs no conversion; its header decides as anyone's."""
    response = HtmlResponse(
        URL, body="<a href='?\u00e9'>".encode("cp1252"), headers={"Content-Type": "text/html; charset=latin1"}
    )
    assert Links.from_page(response).urls == ["http://site.example/dir/page.html?%E9"]


def test_an_object_with_text_alone_is_a_page() -> None:
    """Text that is decoded already is read as it is."""

    class TextPage:
        url = URL
        text = "<a href='/\u00e9?\u00e9'>"

    assert extract_links(TextPage()) == ["http://site.example/%C3%A9?%C3%A9"]  # type: ignore[arg-type]


def test_from_page_gives_canonical_links_with_the_fields_of_the_call() -> None:
    """The batch holds absolute canonical URLs, says so, and carries what the spider gave it."""
    page = StoredPage(b"<a href=/b?2&1#f>")
    links = Links.from_page(page, priority=3, callback="parse_item", cb_kwargs={"n": 1}, meta={"m": 2})
    assert links == Links(
        ["http://site.example/b?2&1"],
        priority=3,
        callback="parse_item",
        cb_kwargs={"n": 1},
        meta={"m": 2},
        canonical=True,
    )
    assert not Links(["/x"], base=URL).canonical


class NamedSpider(Spider):
    name = "named"

    def parse_item(self, response: object) -> None: ...


def test_callbacks_go_by_the_name_of_the_spiders_method() -> None:
    """A method, or its name, gives its name; None stays None."""
    spider = NamedSpider()
    links = Links([URL], callback=spider.parse_item, errback="failed")
    assert (links.callback_name, links.errback_name) == ("parse_item", "failed")
    assert Links([URL]).callback_name is None
    assert Links([URL]).errback_name is None


def test_callbacks_that_no_spider_has_cannot_be_stored() -> None:
    """A lambda or a plain function has no name that another process would find it by."""
    with pytest.raises(RequestNotStorableError, match="callback is <function"):
        _ = Links([URL], callback=lambda response: None).callback_name
    with pytest.raises(RequestNotStorableError, match=r"errback is .*links_of"):
        _ = Links([], errback=links_of).errback_name


def test_what_is_beyond_the_limits_of_a_page_is_left_out_and_told(limits: Callable[[PageLimits], None]) -> None:
    """Bytes, links, and bytes of URLs: what stands before the limit is kept, and the limit that was met is told."""
    many = b"".join(b"<a href=/%d>" % n for n in range(100))
    limits(PageLimits(page_bytes=50))
    assert read_page(StoredPage(many)).left_out == LeftOut(is_cut=True)
    assert read_page(StoredPage(many)).urls == [f"http://site.example/{n}" for n in range(4)]
    limits(PageLimits(links=10))
    assert read_page(StoredPage(many)).left_out == LeftOut(has_more_links=True)
    assert len(read_page(StoredPage(many)).urls) == 10
    limits(PageLimits(link_bytes=100))
    assert read_page(StoredPage(many)).left_out == LeftOut(has_longer_links=True)
    assert len(read_page(StoredPage(many)).urls) == 5
    limits(PageLimits(url_bytes=30))
    mixed = b"<a href=/" + b"x" * 30 + b"><a href='a b?" + b"x" * 30 + b"'><a href=/y>"
    assert read_page(StoredPage(mixed)).left_out == LeftOut(too_long=2)
    assert read_page(StoredPage(mixed)).urls == ["http://site.example/y"]


def test_a_long_base_makes_no_long_urls(limits: Callable[[PageLimits], None]) -> None:
    """What can only be too long is not joined; a reference that does not need the long part is."""
    limits(PageLimits(url_bytes=100))
    html = (
        b"<base href='/" + b"x" * 200 + b"/'><a href=1><a href='2 3'><a href=?4><a href=/5><a href=http://a.example/6>"
    )
    found = read_page(StoredPage(html))
    assert found.urls == ["http://site.example/5"]
    assert found.left_out == LeftOut(too_long=4)


def test_how_often_a_long_base_is_read_again_is_bounded(limits: Callable[[PageLimits], None]) -> None:
    """The parser of oddly spelled links reads the base with each: it may read eight times what the URLs may have."""
    limits(PageLimits(link_bytes=10_000))
    base = b"<base href='/" + b"x" * 979 + b"/'>"  # 1,000 bytes with its site
    odd = b"".join(b"<a href='../%d y'>" % n for n in range(100))
    found = read_page(StoredPage(base + odd))
    assert len(found.urls) == 79
    assert found.left_out == LeftOut(has_longer_links=True)
    plain = b"".join(b"<a href=../%d><a href=//a%d.example>" % (n, n) for n in range(100))
    assert len(read_page(StoredPage(base + plain)).urls) == 200


@pytest.fixture
def limits() -> Iterator[Callable[[PageLimits], None]]:
    yield set_page_limits
    set_page_limits(PageLimits())


@each(
    "fields, said",
    [
        ({"urls": "/page"}, r"urls is '/page', one text: write Links\(\['/page'\]\)"),
        ({"urls": b"/page"}, r"urls is b'/page'"),
        ({"urls": None}, "urls is None"),
        ({"urls": [URL, b"/page"]}, r"urls\[1\] is b'/page'"),
        ({"urls": [URL, None]}, r"urls\[1\] is None"),
        ({"urls": [URL], "base": b"http://a.example/"}, "base is b'http://a.example/'"),
        ({"urls": [URL], "nofollow": URL}, "nofollow is"),
        ({"urls": [URL], "meta": "depth"}, "meta is 'depth'"),
        ({"urls": [URL], "meta": {"depth": "2nd"}}, r"meta\['depth'\] is '2nd'"),
        ({"urls": [URL], "cb_kwargs": [("a", 1)]}, "cb_kwargs is"),
        ({"urls": [URL], "cb_kwargs": {1: "a"}}, "cb_kwargs has the key 1"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_given(fields: dict[str, Any], said: str) -> None:
    """With what to write instead: the traceback shows the spider's own line."""
    with pytest.raises(ContractError, match=said):
        Links(**fields)


def test_urls_may_be_any_collection() -> None:
    """What can be counted and cut is made of a generator, a set or a dict's keys."""
    for urls in ((URL,), {URL}, (url for url in [URL]), {URL: 1}.keys()):
        assert list(Links(urls).urls) == [URL]  # type: ignore[arg-type]


def test_anchors_come_with_their_urls_if_asked_for() -> None:
    """All different texts of the links to a URL, however that is spelled; none where there is no text."""
    page = StoredPage(
        b"<a href=/1>One</a><a href='/1#part'>again</a><a href=/1>One</a><a href=/2><img src=i></a><area href=/3>"
        b"<a href=mailto:x>no</a><a rel=nofollow href=/4>no</a><a href=http://SITE.example/1>third</a><a href=5>f\xe9"
    )
    links = Links.from_page(page, with_anchors=True)
    assert dict(zip(links.urls, links.anchors, strict=True)) == {
        "http://site.example/1": "One again third",
        "http://site.example/2": "",
        "http://site.example/3": "",
        "http://site.example/dir/5": "f\xe9",
    }
    assert Links.from_page(page).anchors == ()
    assert Links.from_page(page).urls == links.urls


def test_anchors_of_one_url_are_bounded(limits: Callable[[PageLimits], None]) -> None:
    """A page may link to a URL as often as it likes; what is beyond a limit of links has no anchor either."""
    page = StoredPage(b"".join(b"<a href=/1>%d</a>" % n for n in range(50)))
    assert Links.from_page(page, with_anchors=True).anchors == [" ".join(map(str, range(ANCHORS_MAX)))]
    limits(PageLimits(links=2))
    page = StoredPage(b"".join(b"<a href=/%d>%d</a>" % (n, n) for n in range(5)))
    assert Links.from_page(page, with_anchors=True).anchors == ["0", "1"]


def test_how_often_pages_change_is_a_word_of_sitemaps() -> None:
    """What a site says of changes stays with its URLs when they are divided; another word is refused."""
    links = Links(["/1", "/2"], base="http://a.example/", changefreq="daily", modified={"http://a.example/1": 7})
    first, second = links.by_priority([0, 1])
    assert first.changefreq == second.changefreq == "daily"
    assert (first.modified, second.modified) == (links.modified, None)
    with pytest.raises(ContractError, match="changefreq is 'often': it must be one of always, hourly"):
        Links([], changefreq="often")


def test_links_are_divided_by_priority() -> None:
    """The highest first; what concerns the page is told once, and URLs keep their order."""
    page = StoredPage(
        b"<meta name=robots content=noarchive><a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>"
        b"<a rel=nofollow href=/4>4</a>"
    )
    links = Links.from_page(page, with_anchors=True, meta={"a": 1})
    first, second = links.by_priority([-1, 5, -1])
    assert (first.priority, first.urls, second.priority, second.urls) == (5, links.urls[1:2], -1, links.urls[::2])
    assert (first.metas, first.nofollow) == (links.metas, links.nofollow)
    assert (second.metas, second.nofollow, second.left_out) == ((), (), LeftOut())
    assert first.canonical
    assert second.meta == {"a": 1}
    assert Links([]).by_priority([]) == [Links([])]
    with pytest.raises(ContractError, match="priorities has 1 for 3 URLs"):
        links.by_priority([1])


def test_the_text_of_a_page_is_read_in_its_encoding(limits: Callable[[PageLimits], None]) -> None:
    """No further than for links."""
    body = "<title>Bienenst\xf6cke</title><p>Honig".encode("latin-1")
    assert page_text(StoredPage(body)) == "Bienenst\xf6cke Honig"
    limits(PageLimits(page_bytes=9))
    assert page_text(StoredPage(body)) == "Bi"
