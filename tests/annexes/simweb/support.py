"""An independent crawler of small webs: lxml, ada and protego, one request after the other."""

from __future__ import annotations

import http.client

import ada_url
from lxml import html
from protego import Protego

LINKS = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}


def hrefs_in(body: bytes) -> tuple[str | None, list[str]]:
    """The base element's URL, and the links of a page as they are written."""
    tree = html.document_fromstring(body, parser=html.HTMLParser(encoding="utf-8"))
    base = next(iter(tree.xpath("//base/@href")), None)
    return base, [
        element.get(attribute) for element in tree.iter(*LINKS) if (attribute := LINKS[element.tag]) in element.attrib
    ]


def without_fragment(url: str) -> str:
    parsed = ada_url.URL(url)
    parsed.hash = ""
    return parsed.href


def links_in(url: str, body: bytes) -> set[str]:
    """Canonical URLs of the links of a page that lead to something to fetch."""
    base, hrefs = hrefs_in(body)
    base_url = ada_url.join_url(url, base) if base else url
    found = set()
    for href in hrefs:
        try:
            link = ada_url.join_url(base_url, href)
        except ValueError:
            continue
        if link.startswith("http:"):
            found.add(without_fragment(link))
    return found


class Crawler:
    """Fetches everything the seeds lead to, once, over one connection a host."""

    def __init__(self, agent: str, obey_robots: bool = True) -> None:
        self._agent = agent
        self._obey_robots = obey_robots
        self._connections: dict[str, http.client.HTTPConnection] = {}
        self._robots: dict[str, Protego] = {}

    def crawl(self, seeds: list[str]) -> dict[str, int]:
        """Statuses by canonical URL."""
        waiting, seen, statuses = list(seeds), set(seeds), {}
        while waiting:
            url = waiting.pop()
            if not self._allowed(url):
                continue
            status, location, kind, body = self._fetch(url)
            statuses[url] = status
            links = set()
            if location:
                links = {without_fragment(ada_url.join_url(url, location))}
            elif status == 200 and kind.startswith("text/html"):
                links = links_in(url, body)
            waiting += links - seen
            seen |= links
        for connection in self._connections.values():
            connection.close()
        return statuses

    def _allowed(self, url: str) -> bool:
        if not self._obey_robots:
            return True
        host = ada_url.URL(url).host
        if host not in self._robots:
            status, _, _, body = self._fetch(f"http://{host}/robots.txt")
            self._robots[host] = Protego.parse(body.decode() if status == 200 else "")
        return bool(self._robots[host].can_fetch(url, self._agent))

    def _fetch(self, url: str) -> tuple[int, str | None, str, bytes]:
        parsed = ada_url.URL(url)
        connection = self._connections.setdefault(parsed.host, http.client.HTTPConnection(parsed.host))
        connection.request("GET", parsed.pathname + parsed.search)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, answer.headers["Location"], answer.headers["Content-Type"], body
