"""Tags are told apart as the HTML standard's tokenizer does, by the word of a parser that builds the tree."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from bigcrawl.markup import ANCHOR_CHARS_MAX, TagEnds, anchor_text, attributes_of, tags, text_within
from tests.support.running.tables import each

pytestmark = pytest.mark.usefixtures("twin")

NAMES = "a,area,base,frame,iframe,link,meta"

PAGES = [
    "<a href=x>y</a><A HREF='x'>y</A><a\thref\n=\n\"x\">",
    '<a class="c" href="x" title="t">',
    '<a title="see href=" href="x">',
    '<a data-href="no" href="x">',
    '<a href="x" href="second">',
    '<a rel="nofollow" href="x"><a href="x" REL=nofollow><a rel = "nofollow" href="x">',
    '<a rel="noopener" href="x"><a rel="noopener NoFollow" href="y"><a rel="n&#111;follow" href="z">',
    '<a href="x" rel="tag" rel="nofollow"><a href="y" rel="nofollow" rel=""><a rel=x data-rel="nofollow" href=z>',
    '<a href="?a=1&amp;b=2&copy=3&copy;&#65;&#x42;&#67x&nosuch;&amp=&ampx">',
    "<a href=x/><a href=a=b\"c ><a href=''><a href><a>",
    '<p title="<a href=no>"><a href=x>',
    "<p title='\"><a href=no>'><a href=x>",
    '<p don\'t x="a>b"><a href=x>',
    '<p ="x>"><a href=x>',
    "<!-- <a href=no> --><a href=x>",
    "<!--><a href=x><!---><a href=y><!-- --!><a href=z><!-- -- > <a href=no> --- --><a href=w>",
    "<!doctype html><?php <a href=no> ?><a href=x></ <a href=no>></><a href=y>",
    "<![CDATA[ <a href=no> ]]><a href=x>",
    "<script>'<a href=no>'</script><a href=x><SCRIPT>'<a href=no>'</Script\n><a href=y>",
    "<style><a href=no></style><title><a href=no></title><textarea><a href=no></textarea><a href=x>",
    "<script src=x/><a href=no></script><a href=x>",
    "<svg><title/><a href=x><style/></svg><math><title/></math><a href=y>",
    "<iframe src=x><a href=no></iframe><a href=y></a><noscript><a href=z></a></noscript>",
    "<noframes><a href=no></noframes><xmp><a href=no></xmp><noembed><a href=no></noembed><a href=x>",
    "<template><a href=no><template></template><a href=no></template><a href=x></template><a href=y>",
    "<plaintext><a href=no>",
    "<abbr><address><basefont><linkx href=no><metadata><a:b href=no><a href=x>",
    "a < b <3 <a href=x> << <a href=y><",
    "<meta name=robots content=nofollow><link rel=canonical href=x><base href=y><area href=z>",
    '<a href="x',
    "<a href=x",
    "<a",
    "<script>",
    "<div></div",
    "",
]


def by_tree(page: str) -> list[tuple[str | None, dict[str, str]]]:
    nodes = LexborHTMLParser(page).css(NAMES)
    return [(node.tag, {name: value or "" for name, value in node.attributes.items()}) for node in nodes]


@each("page", PAGES)
def test_the_tags_of_a_page_are_those_of_its_tree(page: str) -> None:
    """What links come from is found with its attributes, in order, wherever the page hides it or only seems to."""
    expected = [(tag, {"href": found["href"]} if _is_short(tag, found) else found) for tag, found in by_tree(page)]
    found = [(tag, {"href": href} if href is not None else attributes_of(rest)) for tag, href, rest in tags(page, 99)]
    assert [(tag, {"href": of["href"]} if _is_short(tag, of) else of) for tag, of in found] == expected


def _is_short(tag: str | None, attributes: dict[str, str]) -> bool:
    """Whether nothing of the tag but its reference is told."""
    return tag == "a" and "href" in attributes and "nofollow" not in attributes.get("rel", "").lower()


def test_a_page_ends_after_so_many_looks() -> None:
    """Tags that are no links count as well: each costs something."""
    assert [href for _, href, _ in tags('<a href="x">' * 5, 3)] == ["x"] * 3
    assert list(tags("<style></style>" * 3 + '<a href="x">', 3)) == []


def test_a_reference_to_a_character_may_have_any_length() -> None:
    """A number that no integer can be read from stands for no character."""
    assert attributes_of(f"href=&#{'9' * 5_000};") == {"href": "\ufffd"}


def test_the_place_behind_each_tag_is_told_if_asked_for() -> None:
    """Whichever way a tag is read, and no other tags' places."""
    page = '<p><a href="x">y</a><a href=z rel=tag>w</a><area href=v><b>'
    ends = TagEnds()
    assert [page[ends.last :][:3] for _ in tags(page, 9, ends)] == ["y</", "w</", "<b>"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<title>T</title><p>a<b>b</b>\n c", "T a b c"),
        ("a &amp; b&nbsp;c &#65; &lt;i&gt;", "a & b c A <i>"),
        ("a<!-- no -- > no --><!---->b<!-- no", "a b"),
        ("a<script>no<b>no</script>b<STYLE x=y>no</style >c<template><p>no</template>d", "a b c d"),
        ("a<script>no</scripts>no", "a"),
        ("1 < 2 <a title=x href=y>z</a", "1 < 2 z"),
        ("&#" + "9" * 10_000 + ";", "\ufffd"),
        ("", ""),
    ],
)
def test_the_text_of_a_page_is_what_a_reader_sees(page: str, text: str) -> None:
    """Without tags, comments and what is not shown; references are resolved."""
    assert text_within(page, 0, len(page)) == text


@pytest.mark.parametrize(
    ("behind", "text"),
    [
        ("two <i>words</i></a> no", "two words"),
        ("one</A\n>no", "one"),
        ("unclosed <a href=y>no", "unclosed"),
        ("<abbr>short</abbr></a>no", "short"),
        ("x" * 2 * ANCHOR_CHARS_MAX, "x" * ANCHOR_CHARS_MAX),
        ("<img src=i></a>no", ""),
    ],
)
def test_the_text_of_a_link_ends_where_the_link_does(behind: str, text: str) -> None:
    """At its closing tag, at the next link, or at the bound."""
    assert anchor_text(f"<a href=x>{behind}", 10) == text
