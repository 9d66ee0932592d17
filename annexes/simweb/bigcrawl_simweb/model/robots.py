"""The robots.txt files, and the resources that each forbids; `Feature.ROBOTS` adds wrong, slow and unavailable ones."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.markup import render_notice
from bigcrawl_simweb.basics.resources import Kind, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """A kind of robots.txt.

    Attributes:
        text: the file, with `{agent}` for the agent's product token; None: there is no file.
        closes: whether a resource is forbidden to the agent.
        crawl_delay_ms: its crawl delay; 0 for none.
        hops: how many redirects lead to it.
        elsewhere: whether the first redirect leads to another host.
        circles: whether the redirects never end.
        is_sure: whether all correct crawlers agree on the forbidden resources; if not, the host need not be fetched.
        names_sitemap: whether a sitemap line may be added to the text.
    """

    name: str
    text: str | None
    closes: Callable[[Resource], bool]
    crawl_delay_ms: int = 0
    encode: Callable[[str], bytes] = str.encode
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", PLAIN_TEXT),)
    hops: int = 0
    elsewhere: bool = False
    circles: bool = False
    delay_ms: int = 0
    fault: Fault = Fault.NONE
    is_sure: bool = True
    names_sitemap: bool = True


def forbids_kinds(*kinds: Kind) -> Callable[[Resource], bool]:
    return lambda resource: resource.kind in kinds


ROBOTS: Final = (
    RobotsFile("absent", None, forbids_kinds(), status=404),
    RobotsFile(
        "private",
        "User-agent: *\nDisallow: /private/\n",
        forbids_kinds(Kind.PRIVATE),
    ),
    RobotsFile(
        "delayed",
        "User-agent: *\nCrawl-delay: 0.5\nDisallow: /private/\n",
        forbids_kinds(Kind.PRIVATE),
        crawl_delay_ms=500,
    ),
    RobotsFile(
        "own group",
        "User-agent: *\nDisallow: /\n\nUser-agent: {agent}\nDisallow: /private/\nDisallow: /*.txt$\n",
        forbids_kinds(Kind.PRIVATE, Kind.TEXT),
    ),
    RobotsFile("open", "User-agent: *\nDisallow:\n", forbids_kinds()),
    RobotsFile(
        "longest match",
        "User-agent: *\nDisallow: /private/\nAllow: /private/item-0.html\nCrawl-delay: 0.2\n",
        lambda resource: resource.kind is Kind.PRIVATE and resource.number > 0,
        crawl_delay_ms=200,
    ),
    RobotsFile(
        "untidy",
        "# written by hand\r\n\r\nUSER-AGENT : *   # everybody\r\nDISALLOW:/go/\r\nNoindex: /x\r\n"
        "Disallow: /cgi/ # slow\r\nSitemap: /sitemap.xml\r\n",
        forbids_kinds(Kind.HOP, Kind.LOOP, Kind.FAILING),
    ),
    RobotsFile(
        "shared group",
        "User-agent: *\nCrawl-delay: 60\nDisallow: /\n\n"
        "User-agent: otherbot\nUser-agent: {agent}\nCrawl-delay: 0.8\n"
        "Disallow: /private\nDisallow: /archive\n",
        forbids_kinds(Kind.PRIVATE, Kind.HIDDEN),
        crawl_delay_ms=800,
    ),
)


_PRIVATE: Final = "User-agent: *\nDisallow: /private/\n"
_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_LIMIT_BYTES: Final = 500 * 1024  # RFC 9309 §2.5
_SLOW_MS: Final = 1_500
_RETRY_AFTER: Final = ("Retry-After", "2")


def _huge_file() -> str:
    """Return a file with rules at its start, just below the size limit, and after it."""
    line = "# this file grew over the years, and nobody dares to remove anything from it\n"
    text = "User-agent: *\nDisallow: /private/\n"
    text += line * ((_LIMIT_BYTES - len(text) - 100) // len(line)) + "Disallow: /archive/\n"
    return text + line * 3_000 + "Disallow: /phantom/\n"


def _allows_everything(_: Resource) -> bool:
    return True


def _with_query(resource: Resource) -> bool:
    return resource.kind is Kind.PRIVATE or (resource.kind is Kind.PAGE and resource.number % 10 == 9)


def _encode_utf16(text: str) -> bytes:
    return b"\xff\xfe" + text.encode("utf-16-le")


def _compress_gzip(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


KINDS: Final = (
    RobotsFile("forbidden", None, forbids_kinds(), status=403),
    RobotsFile("unauthorised", None, forbids_kinds(), status=401),
    RobotsFile("gone", None, forbids_kinds(), status=410),
    RobotsFile("failing", None, _allows_everything, status=500),
    RobotsFile("unavailable", None, _allows_everything, status=503, headers=(*_HTML, _RETRY_AFTER)),
    RobotsFile("silent", None, _allows_everything, status=503, fault=Fault.SILENT),
    RobotsFile("reset", None, _allows_everything, status=503, fault=Fault.RESET),
    RobotsFile("slow", _PRIVATE, forbids_kinds(Kind.PRIVATE), delay_ms=_SLOW_MS),
    RobotsFile("redirected", _PRIVATE, forbids_kinds(Kind.PRIVATE), hops=1),
    RobotsFile("five hops", _PRIVATE, forbids_kinds(Kind.PRIVATE), hops=5),
    RobotsFile("elsewhere", _PRIVATE, forbids_kinds(Kind.PRIVATE), hops=2, elsewhere=True, names_sitemap=False),
    RobotsFile("redirected to nothing", None, forbids_kinds(), status=404, hops=1),
    # Following more than five is optional; the file allows everything, so both have the same effect.
    RobotsFile("eight hops", "User-agent: *\nDisallow:\n", forbids_kinds(), hops=8, names_sitemap=False),
    RobotsFile("in circles", None, forbids_kinds(), hops=12, circles=True, is_sure=False),
    RobotsFile("huge", _huge_file(), forbids_kinds(Kind.PRIVATE, Kind.HIDDEN), names_sitemap=False),
    RobotsFile("byte order mark", "\ufeff" + _PRIVATE, forbids_kinds(Kind.PRIVATE)),
    # Unreadable for a UTF-8 parser, and without effect if decoded.
    RobotsFile("UTF-16", "User-agent: *\nDisallow:\n", forbids_kinds(), encode=_encode_utf16, names_sitemap=False),
    RobotsFile(
        "Latin-1",
        "# für alle\nUser-agent: *\nDisallow: /café/\nDisallow: /private/\n",
        forbids_kinds(Kind.PRIVATE),
        encode=lambda text: text.encode("latin-1"),
    ),
    RobotsFile(
        "raw letters",
        "User-agent: *\nDisallow: /private/\nDisallow: /topic-0/précis\n",
        lambda resource: resource.kind is Kind.PRIVATE or (resource.kind, resource.number) == (Kind.PAGE, 6),
    ),
    RobotsFile(
        "HTML instead",
        "<!DOCTYPE html>\n<html><head><title>Not found</title></head>\n<body>Disallowed? No: lost.</body></html>\n",
        forbids_kinds(),
        headers=_HTML,
        names_sitemap=False,
    ),
    RobotsFile("empty", "", forbids_kinds(), names_sitemap=False),
    RobotsFile("old line ends", _PRIVATE.replace("\n", "\r"), forbids_kinds(Kind.PRIVATE), names_sitemap=False),
    RobotsFile("queries", "User-agent: *\nDisallow: /*?\nDisallow: /private/\n", _with_query),
    RobotsFile(
        "split group",
        "User-agent: {agent}\nDisallow: /private/\n\nUser-agent: *\nDisallow: /\n\n"
        "User-agent: {agent}\nDisallow: /archive/\n",
        forbids_kinds(Kind.PRIVATE, Kind.HIDDEN),
    ),
    RobotsFile(
        "gzip",
        _PRIVATE,
        forbids_kinds(Kind.PRIVATE),
        encode=_compress_gzip,
        headers=(("Content-Type", PLAIN_TEXT), ("Content-Encoding", "gzip")),
    ),
    RobotsFile("binary", None, forbids_kinds(), headers=(("Content-Type", "application/octet-stream"),)),
    RobotsFile("everything closed", "User-agent: *\nDisallow: /\n", _allows_everything),
)


class RobotsFiles:
    def __init__(self, agent: str, features: frozenset[Feature]) -> None:
        self.rows = ROBOTS + KINDS if Feature.ROBOTS in features else ROBOTS
        self._agent = agent
        self._names_sitemap = Feature.SITEMAPS in features
        self._body = lru_cache(len(self.rows))(self._encode_row)

    def of(self, host: int) -> RobotsFile:
        return self.rows[host % len(self.rows)]

    def answer(self, host: int, step: tuple[int, int] | None, origin: str, next_origin: str) -> Answer:
        """Return a host's answer for robots.txt, or for a redirect target, see `step_of`.

        If the file is elsewhere, it is on `next_origin`.
        """
        row, left = step or (host % len(self.rows), self.rows[host % len(self.rows)].hops)
        robots = self.rows[row]
        if left or (robots.circles and step is not None):
            to = next_origin if robots.elsewhere and step is None else ""
            after = left - 1 if left else robots.hops - 1
            return Answer(301, (*_HTML, ("Location", f"{to}/robots/kind-{row}-{after}.txt")), render_notice(301))
        body = self._body(row)
        if self._names_sitemap and robots.text is not None and robots.names_sitemap:
            body = robots.encode(f"{robots.text.replace('{agent}', self._agent)}\nSitemap: {origin}/sitemap.xml\n")
        return Answer(robots.status, robots.headers, body, delay_ms=robots.delay_ms, fault=robots.fault)

    def steps(self, host: int) -> list[str]:
        row = host % len(self.rows)
        return [f"/robots/kind-{row}-{left}.txt" for left in range(self.rows[row].hops)]

    def step_of(self, target: str) -> tuple[int, int] | None:
        """Return the row and the remaining hops of a redirect target of robots.txt; None for other targets."""
        row, _, left = target.removeprefix("/robots/kind-").removesuffix(".txt").partition("-")
        if not (row.isdecimal() and left.isdecimal() and len(row) < 4 and len(left) < 4):
            return None
        step = int(row), int(left)
        known = step[0] < len(self.rows) and step[1] < self.rows[step[0]].hops
        return step if known and target == f"/robots/kind-{step[0]}-{step[1]}.txt" else None

    def _encode_row(self, row: int) -> bytes:
        robots = self.rows[row]
        if robots.text is not None:
            return robots.encode(robots.text.replace("{agent}", self._agent))
        return bytes(range(256)) * 8 if robots.status == 200 else render_notice(robots.status)
