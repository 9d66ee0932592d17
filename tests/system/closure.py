"""What a crawl of the system checks has to fetch, found out by other means than bigcrawl's.

`link_closure` fetches page after page from the running server and follows what an HTML tokenizer (the
standard library's) calls a link. It shares no code with bigcrawl: not its parser, its frontier, its robots
rules or its HTTP client; only the definition of the canonical URL (the WHATWG serialisation without its
fragment) is the same, made by ada_url as there.

A tokenizer is enough, and for this corpus exact: it knows the places where a tag is only text (script, style,
comments), and over all pages of the packages it finds the same URLs as an HTML5 tree does (`test_closure.py`
holds that). lxml's tree, which libxml2 repairs by older rules, misses some.
"""

from __future__ import annotations

import hashlib
import http.client
import sys
from collections import deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

import ada_url

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

USER_AGENT = "closure"

# The links a crawl follows: elements and their attribute.
LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}

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
    given_base, values = _tokens_of(body)
    base = (canonical(given_base, url) or url) if given_base is not None else url
    links = dict.fromkeys(canonical(value, base) for value in values)
    links.pop("", None)
    return list(links)


_tokens: dict[bytes, tuple[str | None, tuple[str, ...]]] = {}


def _tokens_of(body: bytes) -> tuple[str | None, tuple[str, ...]]:
    """The base that a page gives and the values of its links; each page is met as an answer and as a file."""
    key = hashlib.sha256(body).digest()
    if key not in _tokens:
        tokens = _LinkTokens()
        tokens.feed(body.decode("utf-8", "replace"))
        tokens.close()
        _tokens[key] = tokens.base, tuple(dict.fromkeys(map(sys.intern, tokens.links)))
    return _tokens[key]


class _LinkTokens(HTMLParser):
    """Collects link attributes, and the href of the first base that has one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.base: str | None = None
        self.links: list[str] = []

    def updatepos(self, i: int, j: int) -> int:
        """Count no lines: a tenth of the work, and nobody asks for them."""
        return j

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = "href" if tag == "base" else LINK_ATTRIBUTES.get(tag)
        # Of an attribute given twice the first counts; one without a value is empty.
        value = next((value or "" for name, value in attrs if name == wanted), None) if wanted else None
        if value is None:
            return
        if tag != "base":
            self.links.append(value)
        elif self.base is None:
            self.base = value
