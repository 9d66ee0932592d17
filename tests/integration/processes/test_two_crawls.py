"""Two crawls, processes of their own, on one Redis and the same hosts: polite together, by the server's own log."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.named_web import NamedWeb

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.named_web import Hit

DELAY_MS = 300
TOLERANCE_MS = 20  # between the end of an answer in the kernel of one and in the log of the other


@pytest.mark.long("two crawls that keep the gap of a server")
def test_two_crawls_on_the_same_hosts_keep_their_delay(tmp_path: Path) -> None:
    """Both start at once; each fetches all pages, and no two fetches of a host crowd."""
    with (
        no_strays_below(tmp_path),
        SimulatedWeb(tmp_path / "web", hosts=8, pages=10) as web,
        PrivateRedis() as server,
    ):
        settings = {
            "BIGCRAWL_REDIS_URL": server.url,
            "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
            "BIGCRAWL_PARTITIONS": 8,
        }
        first = Crawl(tmp_path / "first", web.seeds, dict(settings), name="first")
        second = Crawl(tmp_path / "second", web.seeds, dict(settings), name="second")
        with first, second:
            web.pause()
            first.start()
            second.start()
            for crawl in (first, second):
                joined = f"bigcrawl:{{{crawl.name}}}:nodes"
                wait_until(lambda: server.client.exists(joined) == 1, "both have joined")  # noqa: B023
            web.resume()
            assert first.wait(300) == 0
            assert second.wait(300) == 0
        log = web.exchanges()
    log.sort(key=lambda each: each.start_ms)
    times = Counter((each.host, each.target) for each in log)
    assert {times[key] for key in times if key[1] == "/robots.txt"} == {2}
    firsts = {(each.host, each.target): each for each in reversed(log)}
    repeats = [each for each in log if firsts[each.host, each.target] is not each]
    assert repeats[0].start_ms < max(each.start_ms for each in firsts.values()), "they have met"
    short = []
    for host in {each.host for each in log}:
        line = sorted((each.start_ms, each.end_ms) for each in log if each.host == host)
        gaps = [two[0] - one[1] for one, two in itertools.pairwise(line)]
        short += [gap for gap in gaps if gap < DELAY_MS - TOLERANCE_MS]
    assert not short, f"{len(short)} of {len(log)} gaps are too short: {sorted(short)[:10]}"


ADDRESS = "127.0.0.31"
HOSTS = tuple(f"www{number}.example{number}.org" for number in range(3))
FIRST_S, SECOND_S = 1.6, 0.8
KEPT = 0.7  # of all gaps together: a busy machine sends or reads a request late, which no gate can see


@pytest.mark.long("two crawls beside each other; gates of servers: tests/unit/scheduler/gates")
def test_two_crawls_keep_the_gap_of_a_server(tmp_path: Path) -> None:
    """Hosts of their own PLDs on one address; one crawl has two nodes. The longer gap and the longer delay hold."""
    pages = {f"{host}/": '<a href="/1">1</a>' for host in HOSTS} | {f"{host}/1": "page" for host in HOSTS}
    with (
        no_strays_below(tmp_path),
        NamedWeb([ADDRESS], dict.fromkeys(HOSTS, ADDRESS), pages) as web,
        PrivateRedis() as server,
    ):
        settings = {
            "BIGCRAWL_REDIS_URL": server.url,
            "BIGCRAWL_DNS_SERVERS": web.name_server,
            "BIGCRAWL_PARTITIONS": 8,
        }
        seeds = [web.url(host) for host in HOSTS]
        delays = {"BIGCRAWL_SERVER_DELAY": FIRST_S, "BIGCRAWL_HOST_DELAY": 1.5, "USER_AGENT": "first"}
        first = Crawl(tmp_path / "first", seeds, {**settings, **delays}, name="first")
        delays = {"BIGCRAWL_SERVER_DELAY": SECOND_S, "BIGCRAWL_HOST_DELAY": 0.3, "USER_AGENT": "second"}
        second = Crawl(tmp_path / "second", seeds, {**settings, **delays}, name="second")
        with first, second, second_process_of(first, "another") as another:
            first.start()
            second.start()
            wait_until(lambda: bool(web.hits), "a crawl is under way")
            another.start()
            assert first.wait(300) == 0
            assert second.wait(300) == 0
            assert another.wait(300) == 0
        hits = sorted(web.hits, key=lambda hit: hit.at)
    times = Counter((hit.host, hit.target) for hit in hits)
    assert {times[host, target] for host in HOSTS for target in ("/", "/1")} == {2}, "each crawl has all pages"
    assert are_apart(hits, {"first": FIRST_S, "second": SECOND_S})
    for host in HOSTS:
        assert are_apart([hit for hit in hits if hit.host == host], {"first": 1.5, "second": 0.3}), host
    assert met(hits) > 2, "the crawls fetched in turn"


def are_apart(hits: list[Hit], delays_s: dict[str, float]) -> bool:
    """Whether requests took as long as the delays of both crawls want; gates alone are held in stepped time."""
    wanted_s = sum(max(delays_s[a.agent], delays_s[b.agent]) for a, b in itertools.pairwise(hits))
    return hits[-1].at - hits[0].at >= KEPT * wanted_s


def met(hits: list[Hit]) -> int:
    """How often a request of one crawl follows one of the other."""
    return sum(earlier.agent != later.agent for earlier, later in itertools.pairwise(hits))
