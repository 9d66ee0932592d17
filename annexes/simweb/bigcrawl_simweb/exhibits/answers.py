"""Exhibits of `Feature.STATUSES` and `Feature.REDIRECTS`: unusual statuses, content types and redirects."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.markup import render_notice
from bigcrawl_simweb.exhibits.exhibit import HTML, OK, Exhibit, Stand, page

if TYPE_CHECKING:
    from collections.abc import Callable

# In every period, an overloaded page refuses for this long.
_PERIOD_MS, _REFUSING_MS = 12_000, 3_000
_PHANTOM: Final = '<a href="/phantom/type.html">not for crawlers</a>\n'
_WAITS: Final = "waits as long as Retry-After says, then asks again"


def _refusing(status: int, retry_after: str) -> Callable[[Stand], Answer]:
    """Answer `status` part of the time, with Retry-After in "seconds", as a "date", or "" for none."""

    def answer(stand: Stand) -> Answer:
        left_ms = _REFUSING_MS - (stand.at_ms + stand.phase_ms) % _PERIOD_MS
        if left_ms <= 0:
            return page(lambda stand: stand.link)(stand)
        headers: tuple[tuple[str, str], ...] = ()
        if retry_after == "seconds":
            headers = (("Retry-After", str(-(-left_ms // 1000))),)
        elif retry_after == "date":
            headers = (("Retry-After", formatdate(-(-(stand.at_ms + left_ms) // 1000), usegmt=True)),)
        return Answer(status, HTML + headers, render_notice(status))

    return answer


def _only(status: int) -> Callable[[Stand], Answer]:
    return lambda _: Answer(status, HTML, render_notice(status))


def _typed(content_type: str, body: str = _PHANTOM) -> Callable[[Stand], Answer]:
    headers = (("Content-Type", content_type),) if content_type else ()
    return lambda stand: Answer(200, headers, stand.html(stand.link if body == "link" else body).encode())


def _with_headers(*headers: tuple[str, str]) -> Callable[[Stand], Answer]:
    return lambda stand: Answer(200, HTML + headers, stand.html(stand.link).encode())


def _to(status: int, location: Callable[[Stand], str]) -> Callable[[Stand], Answer]:
    return lambda stand: Answer(status, (*HTML, ("Location", location(stand))), render_notice(status))


def _status(slug: str, answer: Callable[[Stand], Answer], lesson: str, *statuses: int, **more: bool) -> Exhibit:
    seen = frozenset(statuses) or OK
    return Exhibit(slug=slug, feature=Feature.STATUSES, answer=answer, lesson=lesson, statuses=seen, **more)  # type: ignore[arg-type]


def _redirect(slug: str, status: int, location: Callable[[Stand], str], lesson: str, **more: bool) -> Exhibit:
    answer, statuses = _to(status, location), frozenset({status})
    return Exhibit(slug=slug, feature=Feature.REDIRECTS, answer=answer, lesson=lesson, statuses=statuses, **more)  # type: ignore[arg-type]


STATUSES: Final = (
    _status("gone", _only(410), "never asks again", 410, leads=False),
    _status("refused", _only(403), "takes it as an answer", 403, leads=False),
    _status("unlawful", _only(451), "takes it as an answer", 451, leads=False),
    _status("teapot", _only(418), "takes it as an answer", 418, leads=False),
    _status("unimplemented", _only(501), "takes it as an answer, or asks again", 501, leads=False, is_retriable=True),
    _status("limited", _refusing(429, "seconds"), _WAITS, 200, 429, is_certain=False, is_retriable=True),
    _status("limited-until", _refusing(429, "date"), _WAITS, 200, 429, is_certain=False, is_retriable=True),
    _status("limited-silently", _refusing(429, ""), "backs off", 200, 429, is_certain=False, is_retriable=True),
    _status("unavailable-until", _refusing(503, "date"), _WAITS, 200, 503, is_certain=False, is_retriable=True),
    _status("no-content", lambda _: Answer(204), "takes it as an empty page", 204, leads=False),
    _status("empty", lambda _: Answer(200, HTML), "takes it as an empty page", leads=False),
    _status("hearsay", lambda s: Answer(203, HTML, s.html(s.link).encode()), "reads it", 203, is_certain=False),
    _status("untyped", _typed("", "link"), "may look at the bytes", is_certain=False),
    _status("xhtml", _typed("application/xhtml+xml; charset=utf-8", "link"), "reads it as HTML"),
    _status("shouted-type", _typed("TEXT/HTML;CHARSET=UTF-8", "link"), "reads types without regard to case"),
    _status("plain-text", _typed("text/plain; charset=utf-8"), "finds no links in text", leads=False),
    _status("picture", _typed("image/png"), "finds no links in a picture", leads=False),
    _status("download", _typed("application/octet-stream"), "finds no links in a file", leads=False),
    _status("cookies", _with_headers(*(("Set-Cookie", f"c{n}=1; Path=/") for n in range(5))), "reads the page"),
    _status("many-headers", _with_headers(*((f"X-Extra-{n}", "x" * 60) for n in range(60))), "reads the page"),
    _status("long-header", _with_headers(("X-Long", "x" * 4_000)), "reads the page"),
)

REDIRECTS: Final = (
    _redirect("see-other", 303, lambda s: s.onward, "follows it"),
    _redirect("temporary", 307, lambda s: s.onward, "follows it"),
    _redirect("permanent", 308, lambda s: s.onward, "follows it"),
    _redirect("relative", 302, lambda s: f"..{s.onward}", "resolves the reference"),
    _redirect("schemeless", 302, lambda s: f"//{s.authority}{s.onward}", "resolves the reference"),
    _redirect("shouted", 301, lambda s: f"HTTP://{s.authority.upper()}{s.onward}", "knows it for the same host"),
    _redirect("fragmented", 301, lambda s: f"{s.onward}#part-1", "leaves the fragment out"),
    _redirect("roundabout", 301, lambda s: f"/a/./b/../..{s.onward}", "resolves the dots"),
    Exhibit(
        slug="long-chain",
        feature=Feature.REDIRECTS,
        answer=_to(302, lambda s: s.onward),
        lesson="follows ten redirects",
        statuses=frozenset({302}),
        chain=10,
    ),
    _redirect("to-itself", 301, lambda s: s.own, "asks once", leads=False),
    _redirect("to-nowhere", 302, lambda _: "http://[not-an-address/", "drops it", leads=False),
    _redirect("to-mail", 302, lambda _: "mailto:someone@example.org", "drops it", leads=False),
    _redirect("to-file", 302, lambda _: "ftp://example.org/file", "drops it", leads=False),
    Exhibit(
        slug="without-location",
        feature=Feature.REDIRECTS,
        answer=_only(302),
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
