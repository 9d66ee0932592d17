"""Two crawls, processes of their own, on one Redis and the same hosts: polite together, by the server's own log."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawls import Crawl, SimulatedWeb
from tests.support.processes import no_strays_below
from tests.support.redis_server import PrivateRedis

if TYPE_CHECKING:
    from pathlib import Path

DELAY_MS = 300
TOLERANCE_MS = 20  # between the end of an answer in the kernel of one and in the log of the other


@pytest.mark.timeout(300)
def test_two_crawls_on_the_same_hosts_keep_their_delay(tmp_path: Path) -> None:
    """Both start at once; each fetches all pages, and no two fetches of a host crowd."""
    with (
        no_strays_below(tmp_path),
        SimulatedWeb(tmp_path / "web", hosts=8, pages=15) as web,
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
            first.start()
            second.start()
            assert first.wait(120) == 0
            assert second.wait(120) == 0
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
