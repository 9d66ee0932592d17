"""References beyond links to pages, on request: the right ones by the HTML standard, each with where it comes from."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import urljoin

import html5lib
import pytest

from bigcrawl.links import LINK_ATTRIBUTES, ON_REQUEST, Links, page_title
from bigcrawl.links.embedded import CANDIDATES_MAX, candidates_of
from bigcrawl.links.page import extract_links, read_page
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

URL = "http://a.example/d/p"
ALL = (*LINK_ATTRIBUTES, *sorted(ON_REQUEST))
XLINK = "{http://www.w3.org/1999/xlink}href"


def page(body: str) -> Any:
    return SimpleNamespace(url=URL, body=body.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def found(body: str, tags: tuple[str, ...]) -> list[tuple[str, str]]:
    """Kinds and URLs of a page."""
    read = read_page(page(body), tags=tags)
    return list(zip(read.kinds, read.urls, strict=True))


# Kind, HTML, what it refers to, and where that is written.
ROWS = [
    ("img", "<img src=x>", ["x"]),  # HTML 4.8.3
    ("img", '<IMG alt="a > b" SRC="x">', ["x"]),
    ("img", "<image src=x>", ["x"]),  # 13.2.6.4.7: `image` is read as `img`
    ("img", "<img src=' x '>", ["x"]),  # 4.8.3: surrounded by spaces
    ("img", "<img src>", []),
    ("img", "<img data-src=x>", []),
    ("img", "<img src='data:image/gif;base64,x'>", []),
    ("img", "<img srcset='x 1x'>", []),
    ("img", "<!-- <img src=x> -->", []),
    ("img", "<script>'<img src=x>'</script>", []),
    ("img", "<template><img src=x></template>", []),
    ("img", "<noscript><img src=x></noscript>", ["x"]),  # 4.12.2, with scripting off
    ("img", "<input type=image src=x>", []),
    ("source", "<video><source src=x></video>", ["x"]),  # 4.8.2
    ("source", "<picture><source srcset=x></picture>", []),
    ("embed", "<embed src=x>", ["x"]),  # 4.8.6
    ("object", "<object data=x></object>", ["x"]),  # 4.8.7
    ("object", "<object data=x codebase=/c/></object>", ["x"]),  # 16.2: codebase has no effect
    ("applet", "<applet code=X.class></applet>", ["X.class"]),  # HTML 4.01 13.4
    ("applet", "<applet code=X.class codebase=/c></applet>", ["/c/X.class"]),
    (
        "applet",
        "<applet archive='a.jar, b.jar' codebase='http://b.example/c/'></applet>",
        ["http://b.example/c/a.jar", "http://b.example/c/b.jar"],
    ),
    ("script", "<script src=x></script>", ["x"]),  # HTML 4.12.1
    ("script", "<script src=x>'<script src=y>'</script><script src=z></script>", ["x", "z"]),
    ("script", "<script>a</script>", []),
    ("form", "<form action=x></form>", ["x"]),  # 4.10.3
    ("form", "<form method=post action=x></form>", ["x"]),
    ("form", "<form></form>", []),
    ("form", "<form><button formaction=x></button><input formaction=y></form>", ["x", "y"]),  # 4.10.19.6
    ("srcset", "<img src=s srcset='x 1x, y 2x'>", ["x", "y"]),  # 4.8.4.2.2
    ("srcset", "<picture><source srcset='x 100w, y 200w'><img></picture>", ["x", "y"]),
    ("srcset", "<link rel=preload as=image imagesrcset='x 1x'>", ["x"]),  # 4.2.4.6
    ("xlink:href", "<svg><a xlink:href=x></a></svg>", ["x"]),  # SVG 1.1 17.1
    ("xlink:href", "<svg><image xlink:href=x /></svg>", ["x"]),
    ("xlink:href", "<svg><use xlink:href=x#y /></svg>", ["x"]),
    ("xlink:href", "<svg><use xlink:href=#y /></svg>", []),
    ("xlink:href", "<svg><g></g></svg><a xlink:href=x></a>", []),  # 13.2.6.5: of foreign elements only
    ("xlink:href", "<math><mrow xlink:href=x></mrow></math>", ["x"]),  # MathML 3 6.4
    ("xlink:href", "<svg><script xlink:href=x></script></svg>", ["x"]),
    ("link", "<link rel=next href=x>", ["x"]),
    ("link", "<link rel=stylesheet href=x>", []),
]


@each("kind, body, references", ROWS)
def test_reference_is_found_if_it_is_asked_for(kind: str, body: str, references: list[str]) -> None:
    """With its kind; and the page's links are what they are without it."""
    body += "<a href=after>after</a>"
    expected = [(kind, urljoin(URL, reference).partition("#")[0]) for reference in references]
    assert found(body, ("a", kind)) == [*expected, ("a", urljoin(URL, "after"))]
    assert found(body, (kind,)) == expected
    assert extract_links(page(body), tags=("a",)) == [urljoin(URL, "after")]
    assert read_page(page(body)).kinds == ()


# By HTML 4.8.4.2.2, as in the web platform tests (parse-a-srcset-attribute).
SRCSETS = [
    ("", []),
    (",", []),
    ("  ,  ,, ", []),
    ("a", ["a"]),
    (" a ", ["a"]),
    ("a,", ["a"]),
    ("a,,", ["a"]),
    (",a", ["a"]),
    ("a, b", ["a", "b"]),
    ("a,b", ["a,b"]),
    ("a 1x,b 2x", ["a", "b"]),
    ("a 1x , b 2x", ["a", "b"]),
    ("a\t1x,\nb\f2x", ["a", "b"]),
    ("a 100w 50h", ["a"]),
    ("a 50h", []),
    ("a 1x 100w", []),
    ("a 1x 2x", []),
    ("a 1q", []),
    ("a 1q, b 2x", ["b"]),
    ("a 1.5e3x", ["a"]),
    ("a .5x", ["a"]),
    ("a +1x", []),
    ("a 1.x", []),
    ("a 1X", []),
    ("a foo(bar, baz) 1x, b", ["b"]),  # a comma in parentheses ends nothing, and nobody knows `foo`
    ("a foo(bar", []),
    ("data:,x 1x, b 2x", ["data:,x", "b"]),
    ("a 0w", []),
    ("/a?b,c 1x", ["/a?b,c"]),
]


@each("srcset, urls", SRCSETS)
def test_srcset_is_read_as_browsers_read_it(srcset: str, urls: list[str]) -> None:
    """A comma at the end of a URL ends it, one within is part of it."""
    assert list(candidates_of(srcset)) == urls


# Anchors without `>`: 002 §3.3.2 reads each; a browser reads the attributes of all as those of the first.
UNCLOSED = [
    ('<a href="/1"<a href="/2">', ["/1", "/2"]),
    ("<a href='/1'<a href='/2'>", ["/1", "/2"]),
    ("<a href=/1<a href=/2>", ["/1", "/2"]),
    ("<a href=/1 <a href=/2>", ["/1", "/2"]),
    ('<A HREF="/1" <A HREF="/2">', ["/1", "/2"]),
    ('<a href="/1" one <a href="/2" two <a href="/3">three</a>', ["/1", "/2", "/3"]),
    ('<a href="/1" one</a> <a href="/2">', ["/1", "/2"]),
    ('<a href="/1"</a><a href="/2">', ["/1", "/2"]),
    ("<a href=/1</a><a href=/2>", ["/1", "/2"]),
    ("<a href=/1<b>one</b>", ["/1"]),
    ('<a href="/1"', ["/1"]),  # the page ends
    ("<a href='/1' ", ["/1"]),
    ('<a class=x href="/1" one', ["/1"]),
    ('<a href="/1', []),  # in the middle of it
    ("<a href=/1", []),
    ("<a", []),
    ("<a ", []),
    ('<a name="x" <a href="/1">', ["/1"]),
    ('<a href="/1" title="<a href=/2>">', ["/1"]),  # in quotes it is text
    ('<a href="/1<a">x</a>', ["/1%3Ca"]),
    ("<a href=/1?a<2>x</a>", ["/1?a%3C2"]),  # no tag begins there
    ('<a href="/1" rel=nofollow<a href="/2">', ["/2"]),
    ('<a href="/1"\n<p>text <a href="/2">', ["/1", "/2"]),
    ('<template><a href="/1"', []),
    ("<a>text <a href=/1>", ["/1"]),
]


@each("body, paths", UNCLOSED)
def test_anchor_that_lacks_its_end_is_read(body: str, paths: list[str]) -> None:
    """Neither it nor the next one is lost."""
    assert extract_links(page(body)) == [f"http://a.example{path}" for path in paths]


TITLES = [
    "<title>A</title>",
    "<TITLE>\n A \t b\n</TITLE>",
    "<title>A &amp; B &lt;i&gt;</title>",
    "<title>A <b>B</b></title>",
    "<title></title><title>B</title>",
    "<title>größe</title>",
    "<!-- <title>no</title> --><title>A</title>",
    "<script>'<title>no</title>'</script><title>A</title>",
    "<svg><title>no</title></svg><title>A</title>",
    "<svg><title>no</title></svg>",
    "<template><title>no</title></template><title>A</title>",
    "<p>none</p>",
    "<title>A</title x><p>",
    "<title>A<!-- B --></title>",
    "<title lang=en dir='ltr'>A</title>",
    "<body><title>A</title>",
    "<title/>A</title>",
]


@each("body", TITLES)
def test_title_is_that_of_an_independent_parser(body: str) -> None:
    """HTML 3.1.5: the first title element, its white space collapsed."""
    elements = list(html5lib.parse(body, namespaceHTMLElements=True).iter("{http://www.w3.org/1999/xhtml}title"))
    inside = [e for t in html5lib.parse(body).iter("{http://www.w3.org/1999/xhtml}template") for e in t.iter()]
    shown = [e for e in elements if (e.text, e.tag) not in {(i.text, i.tag) for i in inside}]
    assert page_title(page(body)) == (" ".join((shown[0].text or "").split()) if shown else "")


def test_long_title_is_cut_and_one_without_end_costs_nothing() -> None:
    """Its length is bounded."""
    assert len(page_title(page("<title>" + "x" * 1_000_000))) == 4_096


PARTS = (
    "<img src={}>",
    "<img srcset='{0} 1x, {0}b 2x'>",
    "<video><source src={}></video>",
    "<embed src='{}'>",
    '<object data="{}"></object>',
    "<script src={}></script>",
    "<form action={}></form>",
    "<svg><a xlink:href={}>t</a></svg>",
    "<svg><image xlink:href='{}'/></svg>",
    "<p>text</p>",
    "<a href={}>t</a>",
    "<!-- <img src={}> -->",
    "<style>img {{ }}</style>",
    "<textarea><img src={}></textarea>",
)
ATTRIBUTES = {
    "img": "src",
    "source": "src",
    "embed": "src",
    "object": "data",
    "script": "src",
    "form": "action",
    "a": "href",
}


@each("seed", range(30))
def test_independent_parser_finds_the_same(seed: int) -> None:
    """html5lib's tree of a page put together by chance has the same references, in the same order."""
    dice = Random(seed)
    body = "".join(dice.choice(PARTS).format(f"r{number}") for number in range(40))
    expected = []
    for element in html5lib.parse(body, namespaceHTMLElements=False).iter():
        name = str(element.tag)
        if value := element.get(ATTRIBUTES.get(name, "none")):
            expected.append((name, value))
        if srcset := element.get("srcset"):
            expected += [("srcset", part.split()[0]) for part in srcset.split(",")]
        if value := element.get(XLINK):
            expected.append(("xlink:href", value))
    tags = ("a", *ATTRIBUTES, "srcset", "xlink:href")
    assert found(body, tags) == [(kind, urljoin(URL, reference)) for kind, reference in expected]


def test_url_that_is_linked_to_and_embedded_is_a_link() -> None:
    """In whatever order."""
    body = "<img src=x><a href=x>x</a><img src=x><img src=y><script src=y></script>"
    assert found(body, ("a", "img", "script")) == [("a", urljoin(URL, "x")), ("img", urljoin(URL, "y"))]


def test_batches_by_kind_say_where_requests_come_from() -> None:
    """Links to pages stay as they are; what concerns the whole page is with them."""
    body = "<meta name=robots content=noindex><a href=x>x</a><img src=y><script src=z></script><iframe src=w></iframe>"
    links, *others = Links.from_page(page(body), tags=ALL, meta={"m": 1}).by_kind()
    assert links.urls == [urljoin(URL, "x"), urljoin(URL, "w")]
    assert (links.meta, links.metas) == ({"m": 1}, (("robots", "noindex"),))
    assert [(each.urls, each.meta, each.metas) for each in others] == [
        ([urljoin(URL, "y")], {"m": 1, "bigcrawl_element": "img"}, ()),
        ([urljoin(URL, "z")], {"m": 1, "bigcrawl_element": "script"}, ()),
    ]


def test_many_candidates_and_references_are_bounded() -> None:
    """A page made to hurt: linear in its bytes, and no more references than links."""
    assert sum(1 for _ in candidates_of("a 1x," * 1_000_000)) == CANDIDATES_MAX
    assert list(candidates_of("a (" * 1_000_000)) == []
    assert list(candidates_of(", " * 1_000_000)) == []
    assert len(extract_links(page("<a " + "href=/x<a " * 100_000 + ">"))) == 1
    applet = f"<applet codebase={'c' * 1_000_000} archive='{','.join(map(str, range(100_000)))}'>"
    assert len(found(applet, ALL)) <= CANDIDATES_MAX
    assert len(found("<img srcset='" + "a 1x," * 100_000 + "'>" * 3 + "<a" * 100_000, ALL)) <= 20_000
