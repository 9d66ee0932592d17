"""What a crawl of the system checks has to fetch, found out by other means than bigcrawl's.

`link_closure` fetches page after page from the running server and follows what an HTML5 tree, which lexbor
builds, has as links. It shares no code with bigcrawl: not its parser, its frontier, its robots rules or its HTTP
client; only the definition of the canonical URL (the WHATWG serialisation without its fragment) is the same, made
by ada_url as there.
"""

from __future__ import annotations

import http.client
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

import ada_url
from selectolax.lexbor import LexborHTMLParser

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

USER_AGENT = "closure"

# The links a crawl follows: elements and their attribute.
LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
_LINKS = ",".join(f"{tag}[{attribute}]" for tag, attribute in LINK_ATTRIBUTES.items())

_TIMEOUT_SECONDS = 120.0  # of a server that answers at once; the machine may be busy


@dataclass(slots=True)
class Closure:
    """The reachable part of the sites."""

    # Canonical URL -> status, of every URL that may be fetched.
    statuses: dict[str, int] = field(default_factory=dict)
    # Reachable by a link, but robots.txt forbids them.
    forbidden: set[str] = field(default_factory=set)
    # URLs whose answer was an HTML page.
    pages: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        urls, pages, forbidden = len(self.statuses), len(self.pages), len(self.forbidden)
        return f"<Closure {urls} URLs, {pages} HTML pages, {forbidden} forbidden>"


def link_closure(seeds: Iterable[str], hosts: Collection[str], robots_agent: str) -> Closure:
    """Follow links and redirects from `seeds` through `hosts` (`address:port`), breadth first, one at a time.

    Every URL is asked for once, 404s included; robots.txt itself is not part of the answer unless linked.
    `robots_agent` chooses the group of the robots rules. Links that are no URL, of other schemes and to
    other hosts are left out.
    """
    closure = Closure()
    clients = {host: _HostClient(host, robots_agent) for host in hosts}
    waiting = deque(dict.fromkeys(canonical(seed, "") for seed in seeds))
    known = set(waiting)
    while waiting:
        url = waiting.popleft()
        client = clients[urlsplit(url).netloc]
        if not client.may_fetch(url):
            closure.forbidden.add(url)
            continue
        status, links, is_page = client.fetch(url)
        closure.statuses[url] = status
        if is_page:
            closure.pages.add(url)
        for link in links:
            if link not in known and urlsplit(link).netloc in clients:
                known.add(link)
                waiting.append(link)
    for client in clients.values():
        client.close()
    return closure


def canonical(link: str, base: str) -> str:
    """The URL of `link` on a page at `base`, without its fragment; '' for what HTTP cannot fetch."""
    try:
        parsed = ada_url.URL(link, base) if base else ada_url.URL(link)
    except ValueError:
        return ""
    if parsed.protocol not in {"http:", "https:"}:
        return ""
    parsed.hash = ""
    return parsed.href


class _HostClient:
    """One host's keep-alive connection and robots rules."""

    def __init__(self, host: str, robots_agent: str) -> None:
        self._origin = f"http://{host}"
        self._connection = http.client.HTTPConnection(host, timeout=_TIMEOUT_SECONDS)
        self._robots_agent = robots_agent
        self._rules = self._read_robots()

    def may_fetch(self, url: str) -> bool:
        return self._rules.can_fetch(self._robots_agent, url)

    def fetch(self, url: str) -> tuple[int, list[str], bool]:
        """Status, canonical links (or the redirect's goal), and whether the answer was an HTML page."""
        status, headers, body = self._get(url.removeprefix(self._origin))
        if 300 <= status < 400 and "location" in headers:
            return status, [canonical(headers["location"], url)], False
        if status != 200 or headers.get_content_type() != "text/html":
            return status, [], False
        return status, page_links(body, url), True

    def close(self) -> None:
        self._connection.close()

    def _get(self, target: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        try:
            response = self._ask(target)
        except (http.client.RemoteDisconnected, BrokenPipeError):  # nginx closes connections that have been idle
            self._connection.close()
            response = self._ask(target)
        return response.status, response.headers, response.read()

    def _ask(self, target: str) -> http.client.HTTPResponse:
        self._connection.request("GET", target, headers={"User-Agent": USER_AGENT})
        return self._connection.getresponse()

    def _read_robots(self) -> RobotFileParser:
        rules = RobotFileParser()
        status, _, body = self._get("/robots.txt")
        rules.parse(body.decode("utf-8", "replace").splitlines() if status == 200 else [])
        return rules


def page_links(body: bytes, url: str) -> list[str]:
    """The canonical URLs that an HTML page at `url` links to, in order, each once.

    The links between the sites are ASCII, so any encoding that extends ASCII finds them; those to the
    outside are not followed.
    """
    tree = LexborHTMLParser(body)
    given = tree.css_first("base[href]")
    base = (canonical(given.attributes["href"] or "", url) or url) if given else url
    values = (node.attributes[LINK_ATTRIBUTES[str(node.tag)]] or "" for node in tree.css(_LINKS))
    links = dict.fromkeys(canonical(value, base) for value in values)
    links.pop("", None)
    return list(links)
