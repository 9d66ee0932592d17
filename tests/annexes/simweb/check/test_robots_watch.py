from __future__ import annotations

from typing import Any

import pytest

from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from bigcrawl_simweb.check.findings import BadFetch, StaleFetch
from tests.support.crawling.exchanges import A, B, page


def anything(host: str, target: str) -> bool:
    return True


def test_page_in_the_millisecond_of_robots_txt_came_after_it():
    """A log of milliseconds cannot tell two quick exchanges apart; robots.txt is taken for the first."""
    assert check_exchanges([page(5), page(5, "/robots.txt")], CheckRules(allows=anything)).ok


def test_page_before_the_end_of_robots_txt_did_not_know_it():
    """Rules count from the moment they were received, not from the moment they were asked for."""
    rules = CheckRules(allows=anything, host_connections=2)
    report = check_exchanges([page(0, "/robots.txt", end_ms=10), page(9), page(10)], rules)
    assert report.robots_not_first == (BadFetch(f"http://{A}/", 9),)


def test_robots_txt_of_yesterday_is_too_old():
    """A page is fetched by a robots.txt received at most 24 hours before; to the millisecond, with tolerance."""
    day_ms = 24 * 3_600_000
    log = [page(0, "/robots.txt", end_ms=10), page(day_ms + 10, "/1"), page(day_ms + 11, "/2")]
    report = check_exchanges(log, CheckRules(allows=anything))
    assert report.kinds == {"robots_stale"}
    assert report.robots_stale == (StaleFetch(f"http://{A}/2", day_ms + 11, day_ms + 1),)
    assert check_exchanges(log, CheckRules(allows=anything, tolerance_ms=1)).ok
    assert check_exchanges(log, CheckRules(allows=anything, robots_max_age_ms=day_ms + 1)).ok
    assert check_exchanges([*log, page(day_ms + 10, "/robots.txt")], CheckRules(allows=anything)).ok


@pytest.mark.parametrize("failed", [{"status": 503}, {"status": 200, "fault": "reset"}])
def test_old_robots_txt_may_be_used_while_a_new_one_cannot_be_had(failed: dict[str, Any]):
    """As RFC 9309 allows, once it has been tried; but a first one that failed is none."""
    again = page(1000, "/robots.txt", **failed)
    rules = CheckRules(allows=anything, robots_max_age_ms=100)
    assert check_exchanges([page(0, "/robots.txt"), again, page(1100)], rules).ok
    assert check_exchanges([page(0, "/robots.txt"), again, page(1101)], rules).kinds == {"robots_stale"}
    assert check_exchanges([again, page(1100)], rules).kinds == {"robots_not_first"}


@pytest.mark.parametrize("status", [200, 301, 404, 403, 429, 499])
def test_robots_txt_that_was_answered_is_one(status: int):
    """What is not there forbids nothing; a long one may be broken off; a redirect leads where the log may not."""
    assert check_exchanges([page(0, "/robots.txt", status), page(1)], CheckRules(allows=anything)).ok


def test_robots_txt_is_asked_for_once_a_period():
    """It was received, and is asked for again too early; after a failure it may be."""
    rules = CheckRules(robots_period_ms=1000)
    first = page(0, "/robots.txt", 404, end_ms=10)
    assert check_exchanges([first, page(1010, "/robots.txt")], rules).ok
    report = check_exchanges([first, page(1009, "/robots.txt"), page(1009, "/robots.txt", host=B)], rules)
    assert report.kinds == {"robots_refetched"}
    (gap,) = report.robots_refetched
    assert (gap.name, gap.gap_ms, gap.wanted_ms) == (A, 999, 1000)
    for status in (429, 499, 500, 503):
        assert check_exchanges([page(0, "/robots.txt", status), page(1, "/robots.txt")], rules).ok
