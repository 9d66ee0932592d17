"""Exhibits of `Feature.MARKUP`: broken HTML, base elements, and unusual references.

Both kinds of HTML parsers (WHATWG and libxml2), and every URL parser that follows the WHATWG standard, agree on them. A
phantom must not be followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.exhibits.exhibit import HTML, Exhibit, Stand, page

if TYPE_CHECKING:
    from collections.abc import Callable

_PHANTOM: Final = "/phantom/markup.html"
_CHARSET: Final = '<meta charset="utf-8">'
_MANY: Final = 1_500
_FINDS: Final = "finds the link"
_RESOLVES: Final = "resolves the reference as browsers do"
_MINDS_BASE: Final = "resolves against the base element"


def _anchor(href: Callable[[Stand], str]) -> Callable[[Stand], Answer]:
    return page(lambda stand: f'<a href="{href(stand)}">onward</a>\n')


def _entities(stand: Stand) -> str:
    return "".join(
        f"&#x{ord(letter):x};" if place % 2 else f"&#{ord(letter)};" for place, letter in enumerate(stand.onward)
    )


def _based(element: str, href: Callable[[Stand], str], body: bool = False) -> Callable[[Stand], Answer]:
    """Write base elements into the head, or at the end of the body; "{authority}" stands for the host's own."""

    def answer(stand: Stand) -> Answer:
        base = element.replace("{authority}", stand.authority)
        link = f'<a href="{href(stand)}">onward</a>\n'
        text = stand.html(link + base) if body else stand.html(link, _CHARSET + base)
        return Answer(200, HTML, text.encode())

    return answer


def _name(stand: Stand) -> str:
    return stand.onward.removeprefix("/proof/")


def _bare(text: Callable[[Stand], str]) -> Callable[[Stand], Answer]:
    return lambda stand: Answer(200, HTML, text(stand).encode())


def _row(slug: str, answer: Callable[[Stand], Answer], lesson: str = _FINDS) -> Exhibit:
    return Exhibit(slug=slug, feature=Feature.MARKUP, answer=answer, lesson=lesson)


MARKUP: Final = (
    _row("unclosed", page(lambda s: f"<table><tr><td><b><p><a href={s.onward}>onward<td><i></b>text<p>")),
    _row("unquoted", page(lambda s: f"<a class=x href={s.onward} title=y>onward</a>")),
    _row("half-quoted", page(lambda s: f"<a title='it\"s' href='{s.onward}'>onward</a>")),
    _row("shouting", page(lambda s: f'<A  HREF = "{s.onward}" >onward</A >')),
    _row("torn", page(lambda s: f'<a\n\thref\n=\n"{s.onward}"\n>onward</a\n>')),
    _row("twice", page(lambda s: f'<a href="{s.onward}" href="{_PHANTOM}">onward</a>'), "takes the first of two"),
    _row("entities", page(lambda s: f'<a href="{_entities(s)}">onward</a>')),
    _row("nested", page(lambda s: f'<a href="/">front<a href="{s.onward}">onward</a></a>')),
    _row("misnested", page(lambda s: f'<b><a href="{s.onward}"></b>onward<div></a></div></i></p></table>')),
    _row("bare", _bare(lambda s: f'<a href="{s.onward}">onward</a>')),
    _row("no-doctype", _bare(lambda s: f'<html><body><a href="{s.onward}">onward</a>')),
    _row("much-first", page(lambda s: s.filler(60_000) + s.link)),
    _row("many-links", page(lambda s: "".join(f'<a href="/#n{n}">{n}</a> ' for n in range(_MANY)) + s.link)),
    _row("controls", page(lambda s: f"before \x01\x08\x1f after {s.link}")),
    _row("commented", page(lambda s: f'<!-- <a href="{_PHANTOM}">no</a> --> {s.link}'), "skips comments"),
    _row("scripted", page(lambda s: f"<script>'<a href=\"{_PHANTOM}\">'</script>{s.link}"), "skips scripts"),
    _row("styled", page(lambda s: f'<style>/* <a href="{_PHANTOM}"> */</style>{s.link}'), "skips styles"),
    _row("area-map", page(lambda s: f'<map name=m><area shape=rect coords=0,0,9,9 href="{s.onward}"></map>')),
    _row("backslashes", _anchor(lambda s: s.onward.replace("/", "\\")), _RESOLVES),
    _row("tabs-inside", _anchor(lambda s: f"{s.onward[:5]}\t{s.onward[5:9]}\n{s.onward[9:]}"), _RESOLVES),
    _row("blanks-around", _anchor(lambda s: f" \n{s.onward}\t "), _RESOLVES),
    _row("scheme-only", _anchor(lambda s: f"http:..{s.onward}"), _RESOLVES),
    _row("one-slash", _anchor(lambda s: f"http:{s.onward}"), _RESOLVES),
    _row("three-slashes", _anchor(lambda s: f"http:///{s.authority}{s.onward}"), _RESOLVES),
    _row("dot-segments", _anchor(lambda s: f"./.././x/%2E%2e/.{s.onward}"), _RESOLVES),
    _row("beyond-the-root", _anchor(lambda s: f"../../../../..{s.onward}"), _RESOLVES),
    _row("empty-fragment", _anchor(lambda s: f"{s.onward}#"), "leaves the fragment out"),
    _row("hashbang", _anchor(lambda s: f"{s.onward}#!/state?x=1"), "leaves the fragment out"),
    _row("itself", page(lambda s: f'<a href="">here</a><a href="#top">top</a>{s.link}'), "knows its own URL"),
    _row("base-directory", _based('<base href="/proof/">', _name), _MINDS_BASE),
    _row("base-relative", _based('<base href="../proof/x.html">', _name), _MINDS_BASE),
    _row("base-absolute", _based('<base href="http://{authority}/proof/">', _name), _MINDS_BASE),
    _row("base-twice", _based('<base href="/proof/"><base href="/phantom/">', _name), "takes the first of two"),
    _row("base-target", _based('<base target="_top"><base href="/proof/">', _name), "takes the first with a href"),
    _row("base-empty", _based('<base href="">', lambda s: f"..{s.onward}"), _MINDS_BASE),
    _row("base-late", _based('<base href="/proof/">', _name, body=True), "takes it for all links of the page"),
)
