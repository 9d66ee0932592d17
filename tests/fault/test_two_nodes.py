"""P5, first form: a second process joins in mid-crawl, takes half the partitions, and leaves or dies again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, second_process_of, shares
from tests.support.crawling.verdicts import assert_complete
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

FAST = {"BIGCRAWL_HOST_DELAY": 0.2, "BIGCRAWL_PARTITIONS": 64}


@pytest.mark.parametrize("how", ["leaves", "dies"])
def test_second_process_takes_half_and_coverage_stays_one(tmp_path: Path, web: SimulatedWeb, how: str) -> None:
    """Both nodes own half; whether the second ends by SIGTERM or by kill -9, every page is fetched once."""
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
        else:
            may_repeat.update(first.taken())
            second.kill()
            may_repeat.update(first.taken())
            wait_until(lambda: shares(first) == [64], "the first owns all again", timeout_s=30)
        assert first.wait(120) == 0
    assert_complete(web.report(delay_ms=200), may_repeat)
