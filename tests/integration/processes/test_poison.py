"""URLs that kill or hang their process, in real crawls that somebody starts again."""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import second_process_of
from tests.support.crawling.plain_project import NotedSite
from tests.support.crawling.poison import SETTINGS, PoisonedCrawl, urls_of, visits_of
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(600)
@pytest.mark.long("four starts of a crawl; tests/unit/commands/repairing has the orders")
def test_dead_letters_are_queued_again_or_dropped_by_hand(tmp_path: Path) -> None:
    """One that is mended is fetched after all; one that is dropped stays unfetched; others are known to be none."""
    with no_strays_below(tmp_path), NotedSite() as site:
        urls = urls_of(site, "kill", "lock", hosts=4)
        [kill], [lock] = ([url for url in urls if url.endswith(word)] for word in ("kill", "lock"))
        with PoisonedCrawl(tmp_path / "crawl", urls, {**SETTINGS, "BIGCRAWL_DEATHS_MAX": 2}) as crawl:
            crawl.supervise(8, timeout_s=180)
            assert crawl.dead() == sorted([kill, lock])
            assert crawl.dead(kill) == [kill]
            assert crawl.asked("explain", lock)["is_dead_letter"]
            unknown = crawl.frontier("dead", "--retry", urls[0], check=False)
            assert (unknown.returncode, unknown.stdout) == (1, f"no dead letter: {urls[0]}\n")
            crawl.antidote.touch()
            before = visits_of(site)
            crawl.frontier("dead", "--drop", lock)
            crawl.frontier("dead", "--retry", "--all")
            assert crawl.frontier("dead").stdout == "there are no dead letters\n"
            assert crawl.run(180) == 0
            assert visits_of(site) - before == Counter({kill: 1})
            assert crawl.asked("explain", kill)["outcome"]["name"] == "status:200"


@pytest.mark.long("deaths of nodes: tests/unit/scheduler/node/test_trials.py")
@pytest.mark.timeout(600)
def test_poison_does_not_kill_node_after_node(tmp_path: Path) -> None:
    """Three nodes, nobody starts them again: it ends two, as it may, and the third brings the crawl to its end."""
    with no_strays_below(tmp_path), NotedSite() as site:
        urls = urls_of(site, "kill")
        settings = {**SETTINGS, "BIGCRAWL_DEATHS_MAX": 2, "BIGCRAWL_HOST_DELAY": 0.3}
        with PoisonedCrawl(tmp_path / "crawl", urls, settings) as first:
            nodes = [first, *(second_process_of(first, f"node{number}") for number in (2, 3))]
            with nodes[1], nodes[2]:
                for node in nodes:
                    node.start()
                statuses = sorted(node.wait(300) for node in nodes)
                assert statuses == [-signal.SIGKILL, -signal.SIGKILL, 0]
            assert set(visits_of(site)) == set(urls)
            assert first.dead() == [url for url in urls if url.endswith("kill")]
