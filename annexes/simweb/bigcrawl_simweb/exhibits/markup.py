"""Exhibits of `Feature.MARKUP`: broken HTML, base elements, and unusual references.

Both kinds of HTML parsers (WHATWG and libxml2), and every URL parser that follows the WHATWG standard, agree on them. A
phantom must not be followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.exhibits.exhibit import HTML, Exhibit, ExhibitContext, page_answer

if TYPE_CHECKING:
    from collections.abc import Callable

_PHANTOM: Final = "/phantom/markup.html"
_CHARSET: Final = '<meta charset="utf-8">'
_MANY: Final = 1_500
_FINDS: Final = "finds the link"
_RESOLVES: Final = "resolves the reference as browsers do"
_MINDS_BASE: Final = "resolves against the base element"


def _page_with_anchor(href: Callable[[ExhibitContext], str]) -> Callable[[ExhibitContext], Answer]:
    return page_answer(lambda stand: f'<a href="{href(stand)}">onward</a>\n')


def _href_in_entities(stand: ExhibitContext) -> str:
    return "".join(
        f"&#x{ord(letter):x};" if place % 2 else f"&#{ord(letter)};" for place, letter in enumerate(stand.onward)
    )


def _page_with_base(
    element: str, href: Callable[[ExhibitContext], str], body: bool = False
) -> Callable[[ExhibitContext], Answer]:
    """Write base elements into the head, or at the end of the body; "{authority}" stands for the host's own."""

    def answer(stand: ExhibitContext) -> Answer:
        base = element.replace("{authority}", stand.authority)
        link = f'<a href="{href(stand)}">onward</a>\n'
        text = stand.html(link + base) if body else stand.html(link, _CHARSET + base)
        return Answer(200, HTML, text.encode())

    return answer


def _proof_name(stand: ExhibitContext) -> str:
    return stand.onward.removeprefix("/proof/")


def _bare_answer(text: Callable[[ExhibitContext], str]) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(200, HTML, text(stand).encode())


def _markup_exhibit(slug: str, answer: Callable[[ExhibitContext], Answer], lesson: str = _FINDS) -> Exhibit:
    return Exhibit(slug=slug, feature=Feature.MARKUP, answer=answer, lesson=lesson)


MARKUP: Final = (
    _markup_exhibit(
        "unclosed", page_answer(lambda s: f"<table><tr><td><b><p><a href={s.onward}>onward<td><i></b>text<p>")
    ),
    _markup_exhibit("unquoted", page_answer(lambda s: f"<a class=x href={s.onward} title=y>onward</a>")),
    _markup_exhibit("half-quoted", page_answer(lambda s: f"<a title='it\"s' href='{s.onward}'>onward</a>")),
    _markup_exhibit("shouting", page_answer(lambda s: f'<A  HREF = "{s.onward}" >onward</A >')),
    _markup_exhibit("torn", page_answer(lambda s: f'<a\n\thref\n=\n"{s.onward}"\n>onward</a\n>')),
    _markup_exhibit(
        "twice", page_answer(lambda s: f'<a href="{s.onward}" href="{_PHANTOM}">onward</a>'), "takes the first of two"
    ),
    _markup_exhibit("entities", page_answer(lambda s: f'<a href="{_href_in_entities(s)}">onward</a>')),
    _markup_exhibit("nested", page_answer(lambda s: f'<a href="/">front<a href="{s.onward}">onward</a></a>')),
    _markup_exhibit(
        "misnested", page_answer(lambda s: f'<b><a href="{s.onward}"></b>onward<div></a></div></i></p></table>')
    ),
    _markup_exhibit("bare", _bare_answer(lambda s: f'<a href="{s.onward}">onward</a>')),
    _markup_exhibit("no-doctype", _bare_answer(lambda s: f'<html><body><a href="{s.onward}">onward</a>')),
    _markup_exhibit("much-first", page_answer(lambda s: s.filler(60_000) + s.link)),
    _markup_exhibit(
        "many-links", page_answer(lambda s: "".join(f'<a href="/#n{n}">{n}</a> ' for n in range(_MANY)) + s.link)
    ),
    _markup_exhibit("controls", page_answer(lambda s: f"before \x01\x08\x1f after {s.link}")),
    _markup_exhibit(
        "commented", page_answer(lambda s: f'<!-- <a href="{_PHANTOM}">no</a> --> {s.link}'), "skips comments"
    ),
    _markup_exhibit(
        "scripted", page_answer(lambda s: f"<script>'<a href=\"{_PHANTOM}\">'</script>{s.link}"), "skips scripts"
    ),
    _markup_exhibit(
        "styled", page_answer(lambda s: f'<style>/* <a href="{_PHANTOM}"> */</style>{s.link}'), "skips styles"
    ),
    _markup_exhibit(
        "area-map", page_answer(lambda s: f'<map name=m><area shape=rect coords=0,0,9,9 href="{s.onward}"></map>')
    ),
    _markup_exhibit("backslashes", _page_with_anchor(lambda s: s.onward.replace("/", "\\")), _RESOLVES),
    _markup_exhibit(
        "tabs-inside", _page_with_anchor(lambda s: f"{s.onward[:5]}\t{s.onward[5:9]}\n{s.onward[9:]}"), _RESOLVES
    ),
    _markup_exhibit("blanks-around", _page_with_anchor(lambda s: f" \n{s.onward}\t "), _RESOLVES),
    _markup_exhibit("scheme-only", _page_with_anchor(lambda s: f"http:..{s.onward}"), _RESOLVES),
    _markup_exhibit("one-slash", _page_with_anchor(lambda s: f"http:{s.onward}"), _RESOLVES),
    _markup_exhibit("three-slashes", _page_with_anchor(lambda s: f"http:///{s.authority}{s.onward}"), _RESOLVES),
    _markup_exhibit("dot-segments", _page_with_anchor(lambda s: f"./.././x/%2E%2e/.{s.onward}"), _RESOLVES),
    _markup_exhibit("beyond-the-root", _page_with_anchor(lambda s: f"../../../../..{s.onward}"), _RESOLVES),
    _markup_exhibit("empty-fragment", _page_with_anchor(lambda s: f"{s.onward}#"), "leaves the fragment out"),
    _markup_exhibit("hashbang", _page_with_anchor(lambda s: f"{s.onward}#!/state?x=1"), "leaves the fragment out"),
    _markup_exhibit(
        "itself", page_answer(lambda s: f'<a href="">here</a><a href="#top">top</a>{s.link}'), "knows its own URL"
    ),
    _markup_exhibit("base-directory", _page_with_base('<base href="/proof/">', _proof_name), _MINDS_BASE),
    _markup_exhibit("base-relative", _page_with_base('<base href="../proof/x.html">', _proof_name), _MINDS_BASE),
    _markup_exhibit(
        "base-absolute", _page_with_base('<base href="http://{authority}/proof/">', _proof_name), _MINDS_BASE
    ),
    _markup_exhibit(
        "base-twice",
        _page_with_base('<base href="/proof/"><base href="/phantom/">', _proof_name),
        "takes the first of two",
    ),
    _markup_exhibit(
        "base-target",
        _page_with_base('<base target="_top"><base href="/proof/">', _proof_name),
        "takes the first with a href",
    ),
    _markup_exhibit("base-empty", _page_with_base('<base href="">', lambda s: f"..{s.onward}"), _MINDS_BASE),
    _markup_exhibit(
        "base-late",
        _page_with_base('<base href="/proof/">', _proof_name, body=True),
        "takes it for all links of the page",
    ),
)
