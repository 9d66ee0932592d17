"""A second process joins a crawl under way: half the partitions are its own, and coverage stays 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, held, second_process_of, shares
from tests.support.crawling.verdicts import assert_complete
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long("a crawl of minutes; two nodes of a shorter one: test_same_command.py")
def test_second_process_joins_without_the_seeds_file(tmp_path: Path) -> None:
    """The first has read it. Before any node has, a missing file is an error that names it.

    Each node owns half; every page is fetched once, and politely, by one of them.
    """
    settings = {"BIGCRAWL_HOST_DELAY": 1, "BIGCRAWL_PARTITIONS": 16}
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=16, pages=12) as web:
        with Crawl(tmp_path / "crawl", web.seeds, settings) as first, second_process_of(first) as second:
            (second.directory / "seeds.txt").unlink()
            assert second.run() != 0
            assert f"{second.directory}/seeds.txt' is neither URLs nor a file" in second.log.read_text()
            first.start()
            wait_until(lambda: len(web.exchanges()) > 30, "the crawl is under way")
            with held(first, web):
                second.start()
                wait_until(lambda: len(shares(first)) == 2, "both have joined")
            wait_until(lambda: shares(first) == [8, 8], "each node owns half")
            assert first.wait(300) == 0
            assert second.wait(300) == 0
            said = second.log.read_text()
            assert "this node has no seeds" in said
            assert "Traceback" not in said
        assert_complete(web.report(delay_ms=1_000))
