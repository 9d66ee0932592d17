"""Names in real crawls: what was checked is what is connected to, and closed addresses see no connection.

Of this machine's loopback network 127.50.0.0/16 is opened, as public addresses are; the rest stays closed.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl_simweb.basics.name_record import NameFault, NameRecord
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.explained import explained
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.named_web import NamedWeb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.support.servers.name_server import Said

OPEN, OPEN_TOO, CLOSED = "127.50.0.1", "127.50.0.2", "127.60.0.1"
SCRAPYS = {"DOWNLOAD_HANDLERS": '{"http": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}'}
HANDLERS = pytest.mark.parametrize("handler", [{}, SCRAPYS], ids=["libcurl", "scrapy"])
GAP_S = 1.0
ARRIVAL_S = 0.8  # by which one request may be longer under way than another, on a machine that is busy
LINKS = "".join(f'<a href="/{number}">{number}</a>' for number in range(6))


def crawled(
    directory: Path,
    names: Mapping[str, Said | Sequence[Said]],
    pages: Mapping[str, str],
    seeds: Sequence[str],
    **settings: Any,
) -> tuple[NamedWeb, dict[str, str]]:
    """Crawl the seeds (hosts) to the end; the web, and how each of its URLs that are known ended."""
    with no_strays_below(directory), NamedWeb([OPEN, OPEN_TOO, CLOSED], names, pages) as web:
        chosen = {
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 0,
            "BIGCRAWL_ALLOW_ADDRESSES": "127.50.0.0/16",
            "BIGCRAWL_DNS_SERVERS": web.name_server,
            "BIGCRAWL_DNS_TIMEOUT": 120,  # so that on a busy machine no name is asked for twice in one look-up
            "BIGCRAWL_DNS_TTL_MIN": 0,
            "BIGCRAWL_HOST_DELAY": 0.05,
            "BIGCRAWL_PARTITIONS": 4,
            "RETRY_TIMES": 1,
            **settings,
        }
        with Crawl(directory / "crawl", [web.url(seed) for seed in seeds], chosen) as crawl:
            assert crawl.run() == 0
            assert b"Traceback" not in crawl.log.read_bytes()
            urls = [web.url(*split(place)) for place in pages] + [web.url(seed) for seed in seeds]
            told = explained(crawl, urls).items()
    ended = {url: said["outcome"]["name"] if said["outcome"] else said["where"] for url, said in told}
    return web, {url.removeprefix("http://").replace(f":{web.port}", ""): end for url, end in ended.items()}


def split(place: str) -> tuple[str, str]:
    host, _, path = place.partition("/")
    return host, f"/{path}"


@HANDLERS
def test_name_that_turns_inside_gets_no_connection_there(tmp_path: Path, handler: dict[str, str]) -> None:
    """DNS rebinding: a name with a TTL of 0 is public for some look-ups and then inside the operator's network."""
    pages = {"flip.example/": LINKS, **{f"flip.example/{number}": "page" for number in range(6)}}
    lives = [NameRecord((OPEN,), ttl_s=0)] * 4
    web, ended = crawled(
        tmp_path, {"flip.example": [*lives, NameRecord((CLOSED,), ttl_s=0)]}, pages, ["flip.example"], **handler
    )
    assert web.hosts_at(CLOSED) == set()
    assert web.hosts_at(OPEN) == {"flip.example"}
    assert set(ended.values()) == {"status:200", "dropped:refused-address"}
    assert web.zone.asked["flip.example"] > len(lives)


@HANDLERS
def test_redirects_lead_to_no_closed_address(tmp_path: Path, handler: dict[str, str]) -> None:
    """A page's redirect is no way inside, by name or by address."""
    names = {"page.example": OPEN, "literal.example": OPEN, "inside.example": CLOSED}
    pages = {
        "page.example/": "->http://inside.example:{port}/secret",
        "literal.example/": f"->http://{CLOSED}:{{port}}/secret",
        "inside.example/secret": "secret",
        f"{CLOSED}/secret": "secret",
    }
    seeds = ["page.example", "literal.example", "inside.example"]
    web, ended = crawled(tmp_path, names, pages, seeds, **handler)
    assert web.hosts_at(CLOSED) == set()
    assert ended["page.example/"] == ended["literal.example/"] == "status:302"
    for place in ("inside.example/secret", f"{CLOSED}/secret"):
        assert ended[place] == "dropped:refused-address", place
    assert ended["inside.example/"] == "withheld", "a seed waits for another setting"


def test_robots_of_a_host_lead_to_no_closed_address(tmp_path: Path) -> None:
    """A robots.txt that redirects inside is out of reach: nothing of its host is fetched."""
    pages = {
        "robots.example/": "never",
        "robots.example/robots.txt": "->http://inside.example:{port}/robots.txt",
    }
    names = {"robots.example": OPEN, "inside.example": CLOSED}
    with no_strays_below(tmp_path), NamedWeb([OPEN, CLOSED], names, pages) as web:
        settings = {
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 0,
            "BIGCRAWL_ALLOW_ADDRESSES": "127.50.0.0/16",
            "BIGCRAWL_DNS_SERVERS": web.name_server,
            "BIGCRAWL_PARTITIONS": 4,
        }
        with Crawl(tmp_path / "crawl", [web.url("robots.example")], settings) as crawl:
            crawl.start()
            wait_until(lambda: web.zone.asked["inside.example"] > 0, "the redirect is followed to its name")
            crawl.terminate()
            assert crawl.wait(300) == 0
        assert web.hosts_at(CLOSED) == set()
        assert {hit.target for hit in web.hits} == {"/robots.txt"}


def test_names_that_fail_end_as_what_they_are(tmp_path: Path) -> None:
    """A name that does not exist ends its URL at once; one whose servers err for a while is fetched all the same."""
    names: dict[str, Any] = {
        "six.example": NameRecord(("2001:db8::1",)),
        "twice.example": [NameFault.SERVFAIL, NameFault.SERVFAIL, NameFault.SERVFAIL, NameFault.SERVFAIL, OPEN],
        "alias.example": NameRecord((OPEN_TOO,), alias="front.example"),
    }
    pages = {"twice.example/": "here", "alias.example/": "here", "gone.example/": "never"}
    web, ended = crawled(tmp_path, names, pages, ["gone.example", "twice.example", "alias.example", "six.example"])
    assert ended == {
        "twice.example/": "status:200",
        "alias.example/": "status:200",
        "gone.example/": "dropped:unresolved",
        "six.example/": "withheld",
    }
    assert web.zone.asked["gone.example"] == 1
    assert web.hosts_at(OPEN_TOO) == {"alias.example"}


@pytest.mark.parametrize("chosen_by", ["environment", "middleware"])
def test_names_that_only_a_proxy_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen_by: str) -> None:
    """No name is looked up here, robots.txt takes the same way, and the proxy may stand inside; a page may not."""
    pages = {
        "far.example/": f'<a href="/2">2</a><a href="http://{CLOSED}:{{port}}/secret">inside</a>',
        "far.example/2": "page",
        "far.example/robots.txt": "User-agent: *\nDisallow: /not",
        f"{CLOSED}/secret": "secret",
    }
    with no_strays_below(tmp_path), NamedWeb([OPEN_TOO, CLOSED], {}, pages) as web:
        proxy = web.url(CLOSED, "")
        settings: dict[str, Any] = {
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 0,
            "BIGCRAWL_DNS_SERVERS": web.name_server,
            "BIGCRAWL_SERVER_DELAY": 0.2,
            "BIGCRAWL_CONTACT": "tests@bigcrawl.org",
            "BIGCRAWL_HOST_DELAY": 0.1,
            "BIGCRAWL_PARTITIONS": 4,
        }
        if chosen_by == "environment":
            monkeypatch.setenv("http_proxy", proxy)
            monkeypatch.setenv("https_proxy", proxy)
        else:
            settings |= {
                "BIGCRAWL_DNS": "proxy",
                "CHOSEN_PROXY": proxy,
                "DOWNLOADER_MIDDLEWARES": '{"tests.support.servers.chosen_proxy.ChosenProxy": 700}',
            }
        with Crawl(tmp_path / "crawl", [web.url("far.example")], settings) as crawl:
            assert crawl.run() == 0
            urls = [web.url(*split(place)) for place in pages]
            ends = {url: said["outcome"] and said["outcome"]["name"] for url, said in explained(crawl, urls).items()}
        assert ends[web.url("far.example", "/2")] == "status:200"
        assert ends[web.url(CLOSED, "/secret")] == "dropped:refused-address"
        assert not web.zone.asked
        assert {hit.target for hit in web.hits} == {"/robots.txt", "/", "/2"}
        assert web.hosts_at(CLOSED) == {"far.example"}


def test_hosts_that_share_a_server_share_its_gap(tmp_path: Path) -> None:
    """Which hosts do is known only after DNS: by address, an alias, an address in the URL. Another server's do not."""
    together = ["one.example", "two.example", "alias.example", OPEN]
    names: dict[str, Any] = {
        "one.example": OPEN,
        "two.example": OPEN,
        "alias.example": NameRecord((OPEN,), alias="front.example"),
    }
    alone = ["far.example"]
    pages = {f"{host}/": "page" for host in together + alone}
    seeds = together + alone
    web, ended = crawled(
        tmp_path, {**names, "far.example": OPEN_TOO}, pages, seeds, BIGCRAWL_SERVER_DELAY=GAP_S, BIGCRAWL_HOST_DELAY=0
    )
    assert set(ended.values()) == {"status:200"}
    at = sorted(hit.at for hit in web.hits if hit.address == OPEN)
    assert len(at) == 2 * len(together)
    # What is measured is when the server reads a request, some time after its start.
    for (first, earlier), (last, later) in combinations(enumerate(at), 2):
        assert later - earlier >= GAP_S * (last - first) - ARRIVAL_S, at
