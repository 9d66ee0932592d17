"""What docs/settings.md says is not as in Scrapy, with bigcrawl alone."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.integration.downloads.conftest import DELAY_S

if TYPE_CHECKING:
    from tests.integration.downloads.sides import Seen

# Two clocks and a scheduler lie between the promise and the origin's log.
TOLERANCE_S = 0.05


def _gaps(seen: Seen, case: str) -> list[float]:
    times = [hit.at for hit in seen.hits if hit.case == case]
    return [later - sooner for sooner, later in pairwise(times)]


@pytest.mark.long("a crawl that waits; the delay that is made of both settings: tests/unit/config")
def test_scrapys_delays_are_off_and_the_frontier_keeps_them(alone: Seen) -> None:
    """DOWNLOAD_DELAY becomes the host's delay, where it is more than the default; AutoThrottle is not there."""
    assert "scrapy.extensions.throttle.AutoThrottle" not in alone.log
    (gap,) = _gaps(alone, "delayed")
    assert gap >= DELAY_S - TOLERANCE_S


def test_retry_waits_in_its_hosts_queue(alone: Seen) -> None:
    """The repeat comes after a back-off of at least two seconds; stock Scrapy's comes at once."""
    (gap,) = _gaps(alone, "retried-late")
    assert gap >= 2 - TOLERANCE_S
    (record,) = alone.records["retried-late"]
    assert (record["status"], record["meta"]["retry_times"]) == (200, 1)
    assert alone.stats["retry/count"] == 1


def test_robots_are_obeyed_without_scrapys_middleware(alone: Seen) -> None:
    """ROBOTSTXT_OBEY does not matter: what robots.txt forbids is not fetched, and its errback hears of it."""
    (record,) = alone.records["forbidden"]
    assert record["error"] == "scrapy.exceptions.IgnoreRequest"
    assert [hit for hit in alone.hits if hit.case == "forbidden"] == []
    assert [hit.target for hit in alone.hits if hit.place == "other"] == ["/robots.txt", "/allowed/"]
    assert "downloadermiddlewares.robotstxt" not in alone.log
