"""What a page or a style sheet needs is found as browsers find it, at a cost linear in its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scrapy.http import HtmlResponse, Response

from bigcrawl.features.requisites.reading import (
    REFERENCES_MAX,
    TAGS_MAX,
    references_in,
    requisites_of_module,
    requisites_of_page,
    requisites_of_sheet,
)
from tests.support.costs.proportion import assert_costs
from tests.support.running.tables import each

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.features.requisites.reading import Requisites

BASE = "http://a.example/d/"


def found(html: str) -> list[str]:
    """The requisites of a page below `BASE`, relative to it."""
    return [url.removeprefix(BASE) for url in requisites_of_page(HtmlResponse(f"{BASE}page", body=html.encode())).urls]


def found_in_sheet(body: bytes, declared: str = "text/css") -> list[str]:
    response = Response(f"{BASE}style.css", headers={"Content-Type": declared}, body=body)
    return [url.removeprefix(BASE) for url in requisites_of_sheet(response).urls]


PAGES = {
    "<img src=a.png>": ["a.png"],
    "<IMG SRC='a.png' srcset='b.png 1x, c.png 2x'>": ["a.png", "b.png", "c.png"],
    "<img src=a.png data-src=b.png data-srcset='c.png 2x'>": ["a.png", "b.png", "c.png"],
    "<picture><source srcset='a.webp 100w, b.webp 200w'><img src=c.png></picture>": ["a.webp", "b.webp", "c.png"],
    "<video src=a.mp4 poster=b.png><source src=c.mp4></video><audio src=d.ogg></audio>": ["b.png"],
    "<link rel=stylesheet href=a.css><link rel='Shortcut ICON' href=b.ico>": ["a.css", "b.ico"],
    "<link rel='alternate stylesheet' href=a.css><link rel=next href=b>": ["a.css"],
    "<link rel=preload as=image imagesrcset='a.png 1x' href=b.png><link rel=manifest href=c>": ["a.png", "b.png", "c"],
    "<link rel=modulepreload href=a.js><link rel=dns-prefetch href=//b.example><link href=c>": ["a.js"],
    "<script src=a.js></script><script>'<img src=b.png>'</script>": ["a.js"],
    "<script type=module>import a from './a.js'</script><script>import('./b.js')</script>": ["a.js"],
    "<style>@import 'a.css'; b {background: url(c.png)}</style><img src=d.png>": ["a.css", "c.png", "d.png"],
    "<p style='background: url(&quot;a.png&quot;)'>": ["a.png"],
    "<td background=a.gif><body background='b.gif'>": ["a.gif", "b.gif"],
    "<input type=Image src=a.png><input src=b.png>": ["a.png"],
    "<object type=image/svg+xml data=a.svg></object><object data=b.html></object><embed src=c>": ["a.svg"],
    "<svg><image href=a.png /><use xlink:href='b.svg#c'/><style/><img src=d.png></svg>": ["a.png", "b.svg", "d.png"],
    "<base href=e/><img src=a.png>": ["e/a.png"],
    "<img src=a.png><base href=e/><base href=f/>": ["e/a.png"],
    "<!-- <img src=a.png> --><textarea><img src=b.png></textarea><title><img src=c.png></title>": [],
    "<noscript><img src=a.png></noscript><template><img src=b.png></template>": ["a.png", "b.png"],
    "<iframe src=a.html><img src=b.png></iframe><a href=c style='d'>": [],
    "<img src=''><img src=page><img src='#a'><img src='data:image/png;base64,AA=='><img src=javascript:a>": [],
    "<img src=a.png><img src=./a.png><img src=../d/a.png>": ["a.png"],
    "<p title='<img src=a.png>' class=b><b ='<img src=c.png>'>": [],
    "a < b <img src=a.png": ["a.png"],
    "<style>a {b: url(c.png)}": ["c.png"],
}

SHEETS = {
    "a {b: url(c.png); d: url( 'e.png' ); f: URL(\"g.png\")}": ["c.png", "e.png", "g.png"],
    "@import 'a.css'; @IMPORT\"b.css\" print; @import url(c.css) layer(d);": ["a.css", "b.css", "c.css"],
    "@font-face {src: url(a.woff2) format('woff2'), local('b'), url(c.woff)}": ["a.woff2", "c.woff"],
    "a {b: image-set('c.png' 1x, url(d.png) 2x type('image/png'), 'e.png' 3x)}": ["c.png", "d.png", "e.png"],
    "a {b: -webkit-image-set(url(c.png) 1x)}": ["c.png"],
    "/* url(a.png) @import 'b.css' */ a {c: 'url(d.png)'} e {f: url(g.png)}": ["g.png"],
    "@namespace url(http://www.w3.org/1999/xhtml); a {b: url(c.png)}": ["c.png"],
    r"a {b: url(c\29 d.png); e: url('f\'g.png'); h: url(i\ j.png)}": ["c)d.png", "f'g.png", "i%20j.png"],
    "a {b: url(#c); d: url(data:image/png;base64,AA==); e: url(); f: url('')}": [],
    "a {b: url(c d.png); e: url(f'g.png); h: url('i\nj.png'); k: url(l.png)}": ["l.png"],
    "a {b: url(c.png": [],
    "a {b: url('é.png?é')}": ["%C3%A9.png?%C3%A9"],
}


@each("html, expected", PAGES.items())
def test_requisites_of_pages(html: str, expected: list[str]) -> None:
    assert found(html) == expected


@each("style, expected", SHEETS.items())
def test_requisites_of_style_sheets(style: str, expected: list[str]) -> None:
    assert found_in_sheet(style.encode()) == expected


MODULES = {
    "import a from './a.js'; import {b as c} from \"../d/b.js\"\nimport '/d/c.js'": ["a.js", "b.js", "c.js"],
    'import{a as b,c}from"./a.js";import"./b.js";export*from"./c.js";let d="./e.js"': ["a.js", "b.js", "c.js"],
    "import a, {\n  b,\n  c\n} from './a.js';\nexport { b } from './b.js'": ["a.js", "b.js"],
    "import a from 'package'; import('./b.js'); import.meta.url; export default './c.js'": [],
    "export const a = './b.js'; export function c() {return './d.js'} imports './e.js'": [],
}


@each("script, expected", MODULES.items())
def test_modules_that_a_module_imports(script: str, expected: list[str]) -> None:
    response = Response(f"{BASE}module.js", body=script.encode())
    assert [url.removeprefix(BASE) for url in requisites_of_module(response).urls] == expected


@pytest.mark.parametrize(
    ("body", "declared"),
    [
        ("a{b:url(é.png)}".encode(), "text/css"),
        ("a{b:url(é.png)}".encode("latin-1"), "text/css; charset=latin-1"),
        ('@charset "windows-1252";a{b:url(é.png)}'.encode("latin-1"), "text/css"),
        (b"\xef\xbb\xbf" + "a{b:url(é.png)}".encode(), "text/css; charset=latin-1"),
        ("a{b:url(é.png)}".encode(), "text/css; charset=unheard-of"),
    ],
)
def test_encoding_of_a_style_sheet(body: bytes, declared: str) -> None:
    """By its mark, its header, or its rule; a path is spelled in UTF-8 all the same."""
    assert found_in_sheet(body, declared) == ["%C3%A9.png"]


def test_limits_are_told() -> None:
    many = "".join(f"<img src={number}>" for number in range(TAGS_MAX + 1))
    page = requisites_of_page(HtmlResponse(BASE, body=many.encode()))
    assert (len(page.urls), page.has_more) == (TAGS_MAX, True)
    sheet = requisites_of_sheet(Response(BASE, body=b"url(a)" * (REFERENCES_MAX + 1)))
    assert sheet == ([f"{BASE}a"], True)
    assert not requisites_of_page(HtmlResponse(BASE, body=b"<img src=a>")).has_more


def test_plain_references_are_not_unescaped() -> None:
    assert [*references_in(r"a{b:url(\2f c);d:url(e)}")] == ["/c", "e"]


PIECES = (
    *("<b>", '<b =">"', "<b '", "<img ", "<", "<!--", "<b style='", "<b style=x>", "<style>", "<style>url(", '<b a="'),
    *("<b s s s", "<svg><style/>", '<p style="b:url(x)">', "<img srcset='a 1x, b 2x'>", '</b x="', "<b s='>'"),
)
MODULE_PIECES = ("import ", ";import ", "\nimport\n", "import './a'", ";import'./", ";export ", "\n", ";")
SHEET_PIECES = (
    *("url(", "url('", 'url("', 'url("a"', "@import ", '@import "', "/*", "'\\", '"a', "image-set(", "((", "url( "),
    *("image-set(url(", "image-set('a' ", "image-set((", "url(a\\", "@namespace ", "a{b:url(x)}"),
)


@each(
    "piece, read",
    [(piece, requisites_of_page) for piece in PIECES]
    + [(one, requisites_of_sheet) for one in SHEET_PIECES]
    + [(one, requisites_of_module) for one in MODULE_PIECES],
)
def test_cost_is_linear(piece: str, read: Callable[[Response], Requisites]) -> None:
    """Of a page or a style sheet that is one piece, again and again."""
    small, large = (HtmlResponse(BASE, body=(piece * (size // len(piece))).encode()) for size in (1 << 15, 1 << 18))
    assert_costs(24, lambda: read(large), lambda: read(small))
