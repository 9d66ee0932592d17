"""Exhibits of `Feature.STATUSES` and `Feature.REDIRECTS`: unusual statuses, content types and redirects."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.markup import render_notice
from bigcrawl_simweb.exhibits.exhibit import HTML, OK, Exhibit, ExhibitContext, page_answer

if TYPE_CHECKING:
    from collections.abc import Callable

# In every period, an overloaded page refuses for this long.
_PERIOD_MS, _REFUSING_MS = 12_000, 3_000
_PHANTOM: Final = '<a href="/phantom/type.html">not for crawlers</a>\n'
_WAITS: Final = "waits as long as Retry-After says, then asks again"


def _refuse_partly(status: int, retry_after: str) -> Callable[[ExhibitContext], Answer]:
    """Answer `status` part of the time, with Retry-After in "seconds" or as a "date", or "" for none."""

    def answer(stand: ExhibitContext) -> Answer:
        left_ms = _REFUSING_MS - (stand.at_ms + stand.phase_ms) % _PERIOD_MS
        if left_ms <= 0:
            return page_answer(lambda stand: stand.link)(stand)
        headers: tuple[tuple[str, str], ...] = ()
        if retry_after == "seconds":
            headers = (("Retry-After", str(-(-left_ms // 1000))),)
        elif retry_after == "date":
            headers = (("Retry-After", formatdate(-(-(stand.at_ms + left_ms) // 1000), usegmt=True)),)
        return Answer(status, HTML + headers, render_notice(status))

    return answer


def _answer_only(status: int) -> Callable[[ExhibitContext], Answer]:
    return lambda _: Answer(status, HTML, render_notice(status))


def _answer_typed(content_type: str, body: str = _PHANTOM) -> Callable[[ExhibitContext], Answer]:
    headers = (("Content-Type", content_type),) if content_type else ()
    return lambda stand: Answer(200, headers, stand.html(stand.link if body == "link" else body).encode())


def _with_headers(*headers: tuple[str, str]) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(200, HTML + headers, stand.html(stand.link).encode())


def _redirect_to(status: int, location: Callable[[ExhibitContext], str]) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(status, (*HTML, ("Location", location(stand))), render_notice(status))


def _status_exhibit(
    slug: str, answer: Callable[[ExhibitContext], Answer], lesson: str, *statuses: int, **more: bool
) -> Exhibit:
    seen = frozenset(statuses) or OK
    return Exhibit(slug=slug, feature=Feature.STATUSES, answer=answer, lesson=lesson, statuses=seen, **more)  # type: ignore[arg-type]


def _redirect_exhibit(
    slug: str, status: int, location: Callable[[ExhibitContext], str], lesson: str, **more: bool
) -> Exhibit:
    answer, statuses = _redirect_to(status, location), frozenset({status})
    return Exhibit(slug=slug, feature=Feature.REDIRECTS, answer=answer, lesson=lesson, statuses=statuses, **more)  # type: ignore[arg-type]


STATUSES: Final = (
    _status_exhibit("gone", _answer_only(410), "never asks again", 410, leads=False),
    _status_exhibit("refused", _answer_only(403), "takes it as an answer", 403, leads=False),
    _status_exhibit("unlawful", _answer_only(451), "takes it as an answer", 451, leads=False),
    _status_exhibit("teapot", _answer_only(418), "takes it as an answer", 418, leads=False),
    _status_exhibit(
        "unimplemented", _answer_only(501), "takes it as an answer, or asks again", 501, leads=False, is_retriable=True
    ),
    _status_exhibit("limited", _refuse_partly(429, "seconds"), _WAITS, 200, 429, is_certain=False, is_retriable=True),
    _status_exhibit(
        "limited-until", _refuse_partly(429, "date"), _WAITS, 200, 429, is_certain=False, is_retriable=True
    ),
    _status_exhibit(
        "limited-silently", _refuse_partly(429, ""), "backs off", 200, 429, is_certain=False, is_retriable=True
    ),
    _status_exhibit(
        "unavailable-until", _refuse_partly(503, "date"), _WAITS, 200, 503, is_certain=False, is_retriable=True
    ),
    _status_exhibit("no-content", lambda _: Answer(204), "takes it as an empty page", 204, leads=False),
    _status_exhibit("empty", lambda _: Answer(200, HTML), "takes it as an empty page", leads=False),
    _status_exhibit("hearsay", lambda s: Answer(203, HTML, s.html(s.link).encode()), "reads it", 203, is_certain=False),
    _status_exhibit("untyped", _answer_typed("", "link"), "may look at the bytes", is_certain=False),
    _status_exhibit("xhtml", _answer_typed("application/xhtml+xml; charset=utf-8", "link"), "reads it as HTML"),
    _status_exhibit(
        "shouted-type", _answer_typed("TEXT/HTML;CHARSET=UTF-8", "link"), "reads types without regard to case"
    ),
    _status_exhibit("plain-text", _answer_typed("text/plain; charset=utf-8"), "finds no links in text", leads=False),
    _status_exhibit("picture", _answer_typed("image/png"), "finds no links in a picture", leads=False),
    _status_exhibit("download", _answer_typed("application/octet-stream"), "finds no links in a file", leads=False),
    _status_exhibit("cookies", _with_headers(*(("Set-Cookie", f"c{n}=1; Path=/") for n in range(5))), "reads the page"),
    _status_exhibit("many-headers", _with_headers(*((f"X-Extra-{n}", "x" * 60) for n in range(60))), "reads the page"),
    _status_exhibit("long-header", _with_headers(("X-Long", "x" * 4_000)), "reads the page"),
)

REDIRECTS: Final = (
    _redirect_exhibit("see-other", 303, lambda s: s.onward, "follows it"),
    _redirect_exhibit("temporary", 307, lambda s: s.onward, "follows it"),
    _redirect_exhibit("permanent", 308, lambda s: s.onward, "follows it"),
    _redirect_exhibit("relative", 302, lambda s: f"..{s.onward}", "resolves the reference"),
    _redirect_exhibit("schemeless", 302, lambda s: f"//{s.authority}{s.onward}", "resolves the reference"),
    _redirect_exhibit(
        "shouted", 301, lambda s: f"HTTP://{s.authority.upper()}{s.onward}", "knows it for the same host"
    ),
    _redirect_exhibit("fragmented", 301, lambda s: f"{s.onward}#part-1", "leaves the fragment out"),
    _redirect_exhibit("roundabout", 301, lambda s: f"/a/./b/../..{s.onward}", "resolves the dots"),
    Exhibit(
        slug="long-chain",
        feature=Feature.REDIRECTS,
        answer=_redirect_to(302, lambda s: s.onward),
        lesson="follows ten redirects",
        statuses=frozenset({302}),
        chain=10,
    ),
    _redirect_exhibit("to-itself", 301, lambda s: s.own, "asks once", leads=False),
    _redirect_exhibit("to-nowhere", 302, lambda _: "http://[not-an-address/", "drops it", leads=False),
    _redirect_exhibit("to-mail", 302, lambda _: "mailto:someone@example.org", "drops it", leads=False),
    _redirect_exhibit("to-file", 302, lambda _: "ftp://example.org/file", "drops it", leads=False),
    Exhibit(
        slug="without-location",
        feature=Feature.REDIRECTS,
        answer=_answer_only(302),
        lesson="takes it as an answer",
        statuses=frozenset({302}),
        leads=False,
    ),
    Exhibit(
        slug="choices",
        feature=Feature.REDIRECTS,
        answer=lambda stand: Answer(300, HTML, stand.html("No choice is given.").encode()),
        lesson="takes it as an answer",
        statuses=frozenset({300}),
        leads=False,
    ),
)
