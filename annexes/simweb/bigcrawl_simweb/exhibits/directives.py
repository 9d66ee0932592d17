"""Exhibits of `Feature.DIRECTIVES`: robots directives of pages and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.exhibits.exhibit import HTML, Exhibit, ExhibitContext

if TYPE_CHECKING:
    from collections.abc import Callable

_CHARSET: Final = '<meta charset="utf-8">'
_FOLLOWS: Final = "follows the link"
_DOES_NOT: Final = "does not follow the link"


def _with_meta(name: str, content: str) -> Callable[[ExhibitContext], Answer]:
    def answer(stand: ExhibitContext) -> Answer:
        head = f'{_CHARSET}<meta name="{name.replace("{agent}", stand.agent)}" content="{content}">'
        return Answer(200, HTML, stand.html(stand.link, head).encode())

    return answer


def _with_headers(*values: str) -> Callable[[ExhibitContext], Answer]:
    def answer(stand: ExhibitContext) -> Answer:
        tags = tuple(("X-Robots-Tag", value.replace("{agent}", stand.agent)) for value in values)
        return Answer(200, HTML + tags, stand.html(stand.link).encode())

    return answer


def _with_rel(value: str) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(200, HTML, stand.html(f'<a rel="{value}" href="{stand.onward}">onward</a>\n').encode())


def _directive_exhibit(slug: str, answer: Callable[[ExhibitContext], Answer], nofollow: bool) -> Exhibit:
    lesson = _DOES_NOT if nofollow else _FOLLOWS
    return Exhibit(slug=slug, feature=Feature.DIRECTIVES, answer=answer, lesson=lesson, nofollow=nofollow)


DIRECTIVES: Final = (
    _directive_exhibit("meta-nofollow", _with_meta("robots", "nofollow"), True),
    _directive_exhibit("meta-none", _with_meta("ROBOTS", "None"), True),
    _directive_exhibit("meta-both", _with_meta("robots", "NOINDEX, NOFOLLOW"), True),
    _directive_exhibit("meta-own", _with_meta("{agent}", "nofollow"), True),
    _directive_exhibit("meta-other", _with_meta("otherbot", "nofollow"), False),
    _directive_exhibit("meta-noindex", _with_meta("robots", "noindex, noarchive"), False),
    _directive_exhibit("header-nofollow", _with_headers("nofollow"), True),
    _directive_exhibit("header-none", _with_headers("none"), True),
    _directive_exhibit("header-twice", _with_headers("noarchive", "noindex, nofollow"), True),
    _directive_exhibit("header-own", _with_headers("{agent}: nofollow"), True),
    _directive_exhibit("header-other", _with_headers("otherbot: nofollow"), False),
    _directive_exhibit("header-noindex", _with_headers("noindex"), False),
    _directive_exhibit("header-expiry", _with_headers("unavailable_after: 25 Jun 2031 15:00:00 GMT"), False),
    _directive_exhibit("rel-nofollow", _with_rel("nofollow"), True),
    _directive_exhibit("rel-among-others", _with_rel("noopener NoFollow external"), True),
    _directive_exhibit("rel-similar", _with_rel("nofollowing noreferrer"), False),
)
