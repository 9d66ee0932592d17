"""Exhibits of `Feature.DIRECTIVES`: robots directives of pages and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.exhibits.exhibit import HTML, Exhibit, Stand

if TYPE_CHECKING:
    from collections.abc import Callable

_CHARSET: Final = '<meta charset="utf-8">'
_FOLLOWS: Final = "follows the link"
_DOES_NOT: Final = "does not follow the link"


def _meta(name: str, content: str) -> Callable[[Stand], Answer]:
    def answer(stand: Stand) -> Answer:
        head = f'{_CHARSET}<meta name="{name.replace("{agent}", stand.agent)}" content="{content}">'
        return Answer(200, HTML, stand.html(stand.link, head).encode())

    return answer


def _header(*values: str) -> Callable[[Stand], Answer]:
    def answer(stand: Stand) -> Answer:
        tags = tuple(("X-Robots-Tag", value.replace("{agent}", stand.agent)) for value in values)
        return Answer(200, HTML + tags, stand.html(stand.link).encode())

    return answer


def _rel(value: str) -> Callable[[Stand], Answer]:
    return lambda stand: Answer(200, HTML, stand.html(f'<a rel="{value}" href="{stand.onward}">onward</a>\n').encode())


def _asks(slug: str, answer: Callable[[Stand], Answer], nofollow: bool) -> Exhibit:
    lesson = _DOES_NOT if nofollow else _FOLLOWS
    return Exhibit(slug=slug, feature=Feature.DIRECTIVES, answer=answer, lesson=lesson, nofollow=nofollow)


DIRECTIVES: Final = (
    _asks("meta-nofollow", _meta("robots", "nofollow"), True),
    _asks("meta-none", _meta("ROBOTS", "None"), True),
    _asks("meta-both", _meta("robots", "NOINDEX, NOFOLLOW"), True),
    _asks("meta-own", _meta("{agent}", "nofollow"), True),
    _asks("meta-other", _meta("otherbot", "nofollow"), False),
    _asks("meta-noindex", _meta("robots", "noindex, noarchive"), False),
    _asks("header-nofollow", _header("nofollow"), True),
    _asks("header-none", _header("none"), True),
    _asks("header-twice", _header("noarchive", "noindex, nofollow"), True),
    _asks("header-own", _header("{agent}: nofollow"), True),
    _asks("header-other", _header("otherbot: nofollow"), False),
    _asks("header-noindex", _header("noindex"), False),
    _asks("header-expiry", _header("unavailable_after: 25 Jun 2031 15:00:00 GMT"), False),
    _asks("rel-nofollow", _rel("nofollow"), True),
    _asks("rel-among-others", _rel("noopener NoFollow external"), True),
    _asks("rel-similar", _rel("nofollowing noreferrer"), False),
)
