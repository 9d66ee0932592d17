"""The web of the benchmark among hostile hosts: who is bad, how, and what the server's log comes to."""

from __future__ import annotations

import socket
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from benchmarks.hostile.figures import figures_of
from benchmarks.hostile.origin import Origin
from benchmarks.hostile.web import KINDS, HostileWeb, Kind, Ports, WebPlan
from bigcrawl_simweb.basics.addresses import address_of, index_of
from bigcrawl_simweb.basics.answer import Fault
from bigcrawl_simweb.serve.access_log import AccessLog, LogLine

if TYPE_CHECKING:
    from pathlib import Path

PLAN = WebPlan(seed=7, hosts=100, bad_percent=30, bad_urls=2, latency_ms=40)
PORTS = Ports(http=8080, dead=8081, refusing=8082)


def seed_of(kind: Kind, ports: Ports = PORTS) -> str:
    for url in PLAN.seeds(ports, with_bad=True):
        index = index_of(urlsplit(url).hostname or "")
        if index is not None and PLAN.kind_of(index) is kind:
            return url
    raise AssertionError(kind)


def test_bad_hosts_are_as_many_as_wanted_and_of_every_kind() -> None:
    """30 of 100, the same number of each kind; the others are healthy."""
    kinds = Counter(PLAN.kind_of(index) for index in range(PLAN.hosts))
    assert kinds.pop(None) == 70
    assert kinds == dict.fromkeys(KINDS, 6)


def test_healthy_seeds_are_the_same_with_bad_hosts_and_without() -> None:
    """The two crawls differ in the bad hosts alone, which are spread evenly among the others."""
    alone, among = list(PLAN.seeds(PORTS, with_bad=False)), list(PLAN.seeds(PORTS, with_bad=True))
    assert len(alone) == 70
    assert len(among) == 70 + 30 * 2
    assert [url for url in among if url in set(alone)] == alone
    half = among[: len(among) // 2]
    assert 25 <= len([url for url in half if url not in set(alone)]) <= 35


def test_each_kind_answers_in_its_way() -> None:
    """What reaches the server of a bad host is answered late, wrongly, or not at all."""
    web = HostileWeb(PLAN)
    found = {
        kind: web.answer(urlsplit(seed_of(kind)).hostname or "", "/robots.txt", PORTS.http)
        for kind in (Kind.SILENT, Kind.SLOW, Kind.LYING)
    }
    assert found[Kind.SILENT].fault is Fault.SILENT
    assert found[Kind.SLOW].delay_ms == 5_000
    assert found[Kind.LYING].is_whole
    lies = [web.answer(urlsplit(seed_of(Kind.LYING)).hostname or "", f"/item-{n}.html", 80) for n in range(9)]
    assert not any(lie.is_whole and ("Content-Encoding", "gzip") not in lie.headers for lie in lies)
    healthy = web.answer(address_of(0), "/page/0.html", PORTS.http)
    assert (healthy.status, healthy.delay_ms) == (200, PLAN.latency_ms)


def test_dead_and_refusing_hosts_are_so(tmp_path: Path) -> None:
    """A dead one leaves connection attempts waiting, a refusing one refuses at once; others can be reached."""
    with Origin(PLAN, tmp_path / "web") as origin:
        places = {kind: urlsplit(seed_of(kind, origin.ports)) for kind in KINDS}
        for kind in (Kind.SILENT, Kind.SLOW, Kind.LYING):
            socket.create_connection((places[kind].hostname or "", places[kind].port or 0), 5).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((places[Kind.REFUSING].hostname or "", places[Kind.REFUSING].port or 0), 5)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                socket.create_connection((places[Kind.DEAD].hostname or "", places[Kind.DEAD].port or 0), 0.2)


def test_figures_count_what_was_between_the_moments(tmp_path: Path) -> None:
    """Pages and robots.txt of healthy hosts that began then; fetches of bad hosts as far as they were open then."""
    healthy, silent = address_of(0), urlsplit(seed_of(Kind.SILENT)).hostname or ""
    lines = [
        (1_000, 1_001, healthy, "/page/0.html", 200),
        (2_000, 2_001, healthy, "/robots.txt", 200),
        (2_500, 2_501, healthy, "/page/1.html", 200),
        (2_600, 2_601, healthy, "/page/2.html", 500),
        (1_500, 4_500, silent, "/robots.txt", 499),
        (4_000, 4_001, healthy, "/page/3.html", 200),
    ]
    log = AccessLog(tmp_path / "access.log")
    for start_ms, end_ms, host, target, status in lines:
        log.write(LogLine(start_ms, end_ms, "127.0.0.1:1", host, host, "GET", target, status, 100))
    log.close()
    found = figures_of(tmp_path / "access.log", PLAN, 2_000, 4_000, 0.5)
    assert (found.pages, found.robots, found.bad) == (1, 1, Counter())
    assert found.bad_slots == 1
    assert (found.pages_per_s, found.requests_per_s) == (0.5, 1.0)
