"""P5, first form: a second process joins in mid-crawl, takes half the partitions, and leaves or dies again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawls import Crawl
from tests.support.processes import wait_until
from tests.support.verdicts import assert_complete

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

FAST = {"BIGCRAWL_HOST_DELAY": 0.2, "BIGCRAWL_PARTITIONS": 64}


def shares(crawl: Crawl) -> list[int]:
    """Partitions of each live node."""
    return sorted(node["partitions"] for node in crawl.status()["nodes"].values())


def second_process_of(crawl: Crawl) -> Crawl:
    """The same crawl from another process; its logs lie in a directory of their own."""
    settings = {
        **crawl.settings,
        "BIGCRAWL_STATE_DIR": crawl.directory / "state",
        "BIGCRAWL_WARC_DIR": crawl.directory / "warc",
    }
    return Crawl(crawl.directory / "second", crawl.seeds, settings, name=crawl.name)


@pytest.mark.parametrize("how", ["stays", "leaves", "dies"])
def test_second_process_takes_half_and_coverage_stays_one(tmp_path: Path, web: SimulatedWeb, how: str) -> None:
    """Both nodes own half; whether the second stays, ends by SIGTERM or by kill -9, every page is fetched once."""
    may_repeat: Counter[str] = Counter()
    with Crawl(tmp_path / "crawl", web.seeds, dict(FAST)) as first, second_process_of(first) as second:
        first.start()
        wait_until(lambda: len(web.exchanges()) > 100, "the crawl is under way")
        second.start()
        wait_until(lambda: shares(first) == [32, 32], "each node owns half", timeout_s=30)
        before = len(web.exchanges())
        wait_until(lambda: len(web.exchanges()) > before + 100, "both fetch")
        if how == "leaves":
            second.terminate()
            assert second.wait(10) == 0
            wait_until(lambda: shares(first) == [64], "the first owns all again", timeout_s=30)
        elif how == "dies":
            may_repeat.update(first.taken())
            second.kill()
            may_repeat.update(first.taken())
            wait_until(lambda: shares(first) == [64], "the first owns all again", timeout_s=30)
        assert first.wait(120) == 0
        if how == "stays":
            assert second.wait(30) == 0
    assert_complete(web.report(delay_ms=200), may_repeat)
