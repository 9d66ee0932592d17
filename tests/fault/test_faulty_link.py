"""A link to Redis that loses replies once a second, or delivers requests long after their sender gave them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.crawling.verdicts import assert_complete
from tests.support.redis_servers.faulty_link import FaultyLink
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1_800)]

SETTINGS = {"BIGCRAWL_HOST_DELAY": 1, "BIGCRAWL_PARTITIONS": 16}


@pytest.mark.parametrize("late_s", [0, 7], ids=["lost", "late"])
def test_crawl_over_a_faulty_link_ends_complete_and_polite(tmp_path: Path, web: SimulatedWeb, late_s: float) -> None:
    """Every reply of a tenth of each second is lost, for as long as the crawl takes: it ends, and has all once."""
    with (
        PrivateRedis() as server,
        FaultyLink(server.socket_path, every_s=1, silent_s=0.1, late_s=late_s) as link,
        Crawl(tmp_path / "crawl", web.seeds, {**SETTINGS, "BIGCRAWL_REDIS_URL": link.url}) as crawl,
    ):
        assert crawl.run(1_500) == 0
        assert link.lost > 30
        assert bool(link.delivered) == bool(late_s)
        assert b"Traceback" not in crawl.log.read_bytes()
    assert_complete(web.report(delay_ms=1_000))
