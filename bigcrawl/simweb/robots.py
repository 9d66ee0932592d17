"""The robots.txt files of the simulated web, and what each of them forbids.

Each row states the file and, beside it and by hand, what it closes for the agent the web is made for. Nothing
here reads robots.txt: a test holds the two columns together with a real parser. Host i has row i modulo
their number, so that a web of `len(ROBOTS)` hosts has every kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.simweb.resources import Kind, Resource

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Robots:
    """One kind of robots.txt.

    Attributes:
        text: the file, with `{agent}` for the agent's product token; None: there is none, 404.
        closes: whether a resource is forbidden to the agent.
        crawl_delay_ms: the Crawl-delay that holds for the agent; 0: none.
    """

    name: str
    text: str | None
    closes: Callable[[Resource], bool]
    crawl_delay_ms: int = 0


def _closes(*kinds: Kind) -> Callable[[Resource], bool]:
    return lambda resource: resource.kind in kinds


ROBOTS: Final = (
    Robots("absent", None, _closes()),
    Robots(
        "private",
        "User-agent: *\nDisallow: /private/\n",
        _closes(Kind.PRIVATE),
    ),
    Robots(
        "delayed",
        "User-agent: *\nCrawl-delay: 0.5\nDisallow: /private/\n",
        _closes(Kind.PRIVATE),
        crawl_delay_ms=500,
    ),
    Robots(
        "own group",
        "User-agent: *\nDisallow: /\n\nUser-agent: {agent}\nDisallow: /private/\nDisallow: /*.txt$\n",
        _closes(Kind.PRIVATE, Kind.TEXT),
    ),
    Robots("open", "User-agent: *\nDisallow:\n", _closes()),
    Robots(
        "longest match",
        "User-agent: *\nDisallow: /private/\nAllow: /private/item-0.html\nCrawl-delay: 0.2\n",
        lambda resource: resource.kind is Kind.PRIVATE and resource.number > 0,
        crawl_delay_ms=200,
    ),
    Robots(
        "untidy",
        "# written by hand\r\n\r\nUSER-AGENT : *   # everybody\r\nDISALLOW:/go/\r\nNoindex: /x\r\n"
        "Disallow: /cgi/ # slow\r\nSitemap: /sitemap.xml\r\n",
        _closes(Kind.HOP, Kind.LOOP, Kind.FAILING),
    ),
    Robots(
        "shared group",
        "User-agent: *\nCrawl-delay: 60\nDisallow: /\n\n"
        "User-agent: otherbot\nUser-agent: {agent}\nCrawl-delay: 0.8\n"
        "Disallow: /private\nDisallow: /archive\n",
        _closes(Kind.PRIVATE, Kind.HIDDEN),
        crawl_delay_ms=800,
    ),
)


def robots_of(host: int) -> Robots:
    """The robots.txt of host `host`."""
    return ROBOTS[host % len(ROBOTS)]
