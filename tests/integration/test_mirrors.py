"""Mirrors are noticed in a crawl, by one node and by two, and cost it little from then on; nobody else pays for it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, second_process_of
from tests.support.mirrored_web import (
    MIRRORS,
    NEAR,
    ORIGINAL,
    OTHERS,
    SETTINGS,
    mirrored_web,
    seeds,
    stop_when_mirrors_get_less,
    told_in,
)
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(1_800)


@pytest.mark.fault  # of played nodes: tests/unit/scheduler/partition/fold/test_mirroring.py
@pytest.mark.parametrize(
    "nodes",
    [
        1,
        2,  # and killed ones: tests/fault/test_mirrors.py
    ],
)
def test_mirrors_cost_a_crawl_little(tmp_path: Path, nodes: int) -> None:
    """They get a good part less than the others beside them; the log says so once, and all that tell of budgets."""
    with ExitStack() as stack:
        stack.enter_context(no_strays_below(tmp_path))
        web = stack.enter_context(mirrored_web())
        settings = {**SETTINGS, "BIGCRAWL_DNS_SERVERS": web.name_server, "BIGCRAWL_PARTITIONS": nodes}
        first = stack.enter_context(Crawl(tmp_path / "crawl", seeds(web), settings))
        crawls = [first, *(stack.enter_context(second_process_of(first)) for _ in range(nodes - 1))]
        for crawl in crawls:
            crawl.start()
        stop_when_mirrors_get_less(crawls, web)
        assert "Traceback" not in "".join(crawl.log.read_text() for crawl in crawls)
        assert sorted(told_in(crawls)) == sorted(MIRRORS), "each once, and nobody else"
        assert first.status()["mirrors"] == len(MIRRORS)
        assert "mirrors     2 PLDs have lower budgets" in first.frontier("status").stdout
        set_by = {row["pld"]: row["budget_set_by"] for row in first.asked("plds")["plds"]}
        assert set_by == dict.fromkeys(MIRRORS, "mirror") | dict.fromkeys((ORIGINAL, *OTHERS), "policy")
        original = first.asked("budget", ORIGINAL)
        for mirror in MIRRORS:
            lowered = first.asked("budget", mirror)["mirror"]
            assert lowered.startswith("divided by 20, unless it is set by hand: ")
            assert lowered.endswith(f"with the key {original['pld_key']}")
            explained = first.asked("explain", web.url(f"www.{mirror}", "/7"))["mirror"]
            assert (explained["is_mirror"], explained["budget_divided_by"]) == (True, 20)
            assert "mirror" in first.frontier("explain", web.url(f"www.{mirror}", "/7")).stdout
        assert original["mirror"] is None


@pytest.mark.long("tests/unit/features/mirrors/test_fold.py, of played nodes")
def test_mirrors_that_differ_a_little_cost_a_crawl_little(tmp_path: Path) -> None:
    """Each of their pages prints a date; sites that share a template are no mirrors."""
    with no_strays_below(tmp_path), mirrored_web(is_dated=True) as web:
        settings = {**SETTINGS, **NEAR, "BIGCRAWL_DNS_SERVERS": web.name_server, "BIGCRAWL_PARTITIONS": 1}
        with Crawl(tmp_path / "crawl", seeds(web), settings) as crawl:
            crawl.start()
            stop_when_mirrors_get_less([crawl], web)
            assert sorted(told_in([crawl])) == sorted(MIRRORS), "each once, and nobody else"
