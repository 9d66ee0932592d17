"""Groups and delays set by hand are kept by two nodes, robots.txt included, as the server's log has it."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import pytest

from bigcrawl.url.canonical import host_of
from tests.integration.pace.groups import by_last
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.crawling.verdicts import assert_complete
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

GROUP_MS, RULED_MS = 800, 1_600
ARRIVAL_MS = 600  # by which one request may be longer under way than another, on a machine that is busy


@pytest.mark.long("two nodes with delays by hand: tests/unit/scheduler/rules")
def test_two_nodes_keep_groups_and_delays_by_hand(tmp_path: Path) -> None:
    """Starts in a group are its gap apart whichever host and node; a ruled host rests longer, and nothing is missed."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=12, pages=8) as web:
        ruled = host_of(web.seeds[0])
        settings = {
            "BIGCRAWL_HOST_DELAY": 0,
            "BIGCRAWL_PARTITIONS": 8,
            "BIGCRAWL_GROUP": "tests.integration.pace.groups.by_last",
            "BIGCRAWL_GROUP_DELAY": GROUP_MS / 1000,
            "BIGCRAWL_DELAY_RULES": json.dumps({ruled: {"delay": RULED_MS / 1000}}),
        }
        with Crawl(tmp_path / "crawl", web.seeds, settings) as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: len(web.exchanges()) > 1, "the crawl is under way")
            second.start()
            assert first.wait(300) == 0
            assert second.wait(300) == 0
        assert_complete(web.report())
        starts: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for exchange in sorted(web.exchanges(), key=lambda x: x.start_ms):
            group = by_last(exchange.host, exchange.target)
            if group is not None:
                starts[group].append((exchange.start_ms, f"{exchange.host}{exchange.target}"))
        assert sum(len(times) - 1 for times in starts.values()) > 50
        for times in starts.values():
            for (at, earlier), (later_at, later) in combinations(enumerate(times), 2):
                assert later[0] - earlier[0] >= GROUP_MS * (later_at - at) - ARRIVAL_MS, times[at : later_at + 1]
        of_ruled = sorted((x.start_ms, x.end_ms) for x in web.exchanges() if x.host == ruled)
        rests = [later[0] - earlier[1] for earlier, later in pairwise(of_ruled)]
        assert len(rests) > 5
        assert min(rests) >= RULED_MS, sorted(rests)[:5]
