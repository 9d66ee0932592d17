"""The witnesses of the system checks, checked themselves: the sites, nginx and its log, the link closure."""

from __future__ import annotations

import socket
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.system.closure import USER_AGENT, page_links
from tests.system.corpora import Site
from tests.system.nginx import NginxSites, parse_log_line

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.closure import Closure

PAGE = "http://127.30.0.1:8000/a/page.html"


@pytest.mark.parametrize(
    ("html", "links"),
    [
        ('<a href="b.html#top">', ["http://127.30.0.1:8000/a/b.html"]),
        ("<map><area href=/x></map>", ["http://127.30.0.1:8000/x"]),
        ("<frameset><frame src=f1><frame src=f2></frameset>", ["http://127.30.0.1:8000/a/f1", "http://127.30.0.1:8000/a/f2"]),
        ("<iframe src='//h.example/'></iframe>", ["http://h.example/"]),
        ('<base href="/b/"><base href="/c/"><a href="d">', ["http://127.30.0.1:8000/b/d"]),
        ('<a href="  e&amp;f\n">', ["http://127.30.0.1:8000/a/e&f"]),
        ('<a href="g" href="h">', ["http://127.30.0.1:8000/a/g"]),
        ("<a href>", [PAGE]),
        ("<a name=x><a href='mailto:a@b.example'><a href='javascript:1'><a href='http://[/'>", []),
        ("<!-- <a href=i> --><script>'<a href=j>'</script><style><a href=k></style><img src=l>", []),
        ("<a href=m><a href=m#n><a href=./m>", ["http://127.30.0.1:8000/a/m"]),
    ],
)  # fmt: skip
def test_links_of_a_page(html: str, links: list[str]) -> None:
    """Links are those of a, area, frame and iframe, resolved against the base, canonical, each once."""
    assert page_links(html.encode(), PAGE) == links


def test_log_line_gives_times_in_whole_milliseconds() -> None:
    """A request's start is its end less its duration, exactly."""
    line = "1700000000.005\t0.010\t7\t127.30.0.2\tGET\t/a?b\t404\t153\tbigcrawl/1 (+x)"
    exchange = parse_log_line(line).as_exchange()
    assert (exchange.start_ms, exchange.end_ms) == (1_699_999_999_995, 1_700_000_000_005)
    assert (exchange.host, exchange.target, exchange.status) == ("127.30.0.2", "/a?b", 404)


@pytest.mark.system
def test_corpus_is_large_enough_and_small_enough(served: NginxSites, closure: Closure) -> None:
    """At least 20 hosts give pages; all together they are worth crawling and done within minutes."""
    urls = Counter(urlsplit(url).hostname for url in closure.statuses)
    pages = Counter(urlsplit(url).hostname for url in closure.pages)
    for site in served.sites:
        print(f"{site.name:16} {site.address:12} {urls[site.address]:5} URLs {pages[site.address]:5} pages")  # noqa: T201
    print(closure)  # noqa: T201
    assert len(pages) >= 20
    assert 6_000 <= len(closure.statuses) <= 10_000
    assert {200, 301, 404} <= set(closure.statuses.values())


@pytest.mark.system
def test_log_tells_what_the_closure_fetched(served: NginxSites, closure: Closure) -> None:
    """nginx's log holds the closure's URLs with their statuses, each once, and each host's robots.txt."""
    logged = [
        (f"http://{request.address}:{served.port}{request.target}", request.status)
        for request in served.requests(USER_AGENT)
    ]
    robots = {served.url(site, "/robots.txt"): 404 if site.robots is None else 200 for site in served.sites}
    assert Counter(logged) == Counter((closure.statuses | robots).items())


@pytest.mark.system
def test_log_has_times_of_whole_requests(served: NginxSites, closure: Closure) -> None:
    """The closure fetches one URL after another, and so do the times in the log."""
    exchanges = served.exchanges(USER_AGENT)
    assert len(exchanges) > len(closure.statuses)
    assert all(exchange.start_ms <= exchange.end_ms for exchange in exchanges)
    assert all(earlier.end_ms <= later.start_ms for earlier, later in pairwise(exchanges))


@pytest.mark.system
def test_forbidden_pages_exist(served: NginxSites, closure: Closure) -> None:
    """Every robots.txt with a rule for us forbids pages that are linked and there to be fetched."""
    forbidden = {urlsplit(url).hostname for url in closure.forbidden}
    hosts = {site.address for site in served.sites if site.name in _FORBIDDING}
    assert forbidden == hosts
    assert closure.forbidden.isdisjoint(closure.statuses)
    for site in served.sites:
        targets = [urlsplit(url).path for url in closure.forbidden if urlsplit(url).hostname == site.address]
        assert any(_exists(site, target) for target in targets) == (site.address in hosts)


@pytest.mark.system
def test_nginx_ends_with_its_context(tmp_path: Path) -> None:
    """Two servers run side by side on ports of their own, and each is gone once stopped."""
    site = Site(name="one", address="127.30.0.1", root=tmp_path, robots="User-agent: *\n")
    with NginxSites([site], tmp_path / "a") as first, NginxSites([site], tmp_path / "b") as second:
        assert first.port != second.port
        ports = (first.port, second.port)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((site.address, port), 5)


@pytest.mark.system
def test_nginx_that_cannot_start_says_why(tmp_path: Path) -> None:
    """A configuration that nginx refuses gives nginx's own words, not a hanging test."""
    site = Site(name="one", address="127.30.0.1", root=tmp_path, redirects={"{": "127.30.0.2"})
    with pytest.raises(RuntimeError, match=r"(?s)did not start: .*\[emerg\]"):
        NginxSites([site], tmp_path / "nginx").start()


_FORBIDDING = {"python", "sqlite", "apache-en", "handbook-en-US", "handbook-ja-JP"}


def _exists(site: Site, target: str) -> bool:
    path = site.root / target.lstrip("/")
    return path.is_file() or (path / "index.html").is_file()
