"""The robots.txt files, and the resources that each of them forbids.

A row has the file and, entered by hand, its effect for the web's agent, which a test compares with a real parser. Host
i has row i modulo their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.answer import Fault
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
