"""What was fetched when, counted from logs that are written here."""

from __future__ import annotations

import pytest

from benchmarks.spam.timeline import Point, is_home, ratio, timeline_of
from bigcrawl_simweb.serve.access_log import LogLine

SPAM = ("a.bada-offers0.biz", "b.bada-offers0.biz", "c.dofa-offers1.info")
LEGIT = frozenset(f"http://one.example/{number}" for number in range(10))


def line(end_ms: int, host: str, target: str, status: int = 200) -> LogLine:
    return LogLine(end_ms - 50, end_ms, "127.0.0.1:5", host, "127.16.0.1", "GET", target, status, 100)


def page(end_ms: int, number: int, status: int = 200) -> LogLine:
    return line(end_ms, "one.example", f"/{number}", status)


def pld_of(host: str) -> str:
    return host.split(".", 1)[1]


def test_a_share_is_reached_when_so_many_pages_are_there() -> None:
    """Ten pages, one a second: five after five seconds, nine after nine, all after ten; 99 % of ten are all."""
    lines = [page(50 + 1000 * (number + 1), number) for number in range(10)]
    found = timeline_of([line(50, "one.example", "/robots.txt"), *lines], LEGIT, pld_of)
    assert found.reached_s == {0.5: 5.05, 0.9: 9.05, 0.99: 10.05, 1.0: 10.05}
    assert (found.reachable, found.legit, found.spam, found.seconds) == (10, 10, 0, 10.05)


def test_a_share_that_is_never_reached_has_no_time() -> None:
    """Eight of ten pages: half is reached, the others are not."""
    found = timeline_of([page(1000 + number, number) for number in range(8)], LEGIT, pld_of)
    assert found.reached_s[0.5] is not None
    assert [found.reached_s[share] for share in (0.9, 0.99, 1.0)] == [None] * 3


def test_each_page_counts_once_and_only_if_the_crawler_got_it() -> None:
    """Repeats and given up requests count for nothing, nor do URLs that nothing leads to."""
    lines = [page(1000, 1), page(2000, 1), page(3000, 2, status=499), page(4000, 77), page(5000, 3, status=404)]
    found = timeline_of(lines, LEGIT, pld_of)
    assert (found.legit, found.spam) == (2, 0)


def test_spam_is_counted_by_domain_and_apart_from_its_robots_txt() -> None:
    """Two farms, three hosts, and what they cost until half of the legitimate pages were there."""
    lines = [line(1000 + number, host, "/robots.txt") for number, host in enumerate((*SPAM, "one.example"))]
    lines += [line(2000, SPAM[0], "/"), line(2001, SPAM[1], "/"), line(9000, SPAM[2], "/"), line(9001, SPAM[2], "/")]
    lines += [page(3000 + number, number) for number in range(5)]
    found = timeline_of(lines, LEGIT, pld_of)
    assert (found.robots_spam, found.robots_legit) == (3, 1)
    assert found.spam_of == {"bada-offers0.biz": 2, "dofa-offers1.info": 1}
    assert found.spam == 3
    assert found.spam_until == {0.5: 2, 0.9: None, 0.99: None, 1.0: None}
    assert found.fetches_until == {0.5: 4 + 2 + 5, 0.9: None, 0.99: None, 1.0: None}


def test_made_up_directories_are_spam_beside_homes_and_their_hosts_robots_txt_is_not() -> None:
    """One host has both: by the path it is spam or not, and only what was to be found counts as legitimate."""
    host, home = "www.bada-homes0.biz", "/~user-1/"
    lines = [line(1000 + at, host, target) for at, target in enumerate(("/robots.txt", home, "/~user-offers7/"))]
    found = timeline_of(lines, {f"http://{host}{home}"}, pld_of)
    assert (found.legit, found.spam, found.robots_legit, found.robots_spam) == (1, 1, 1, 0)
    assert found.spam_of == {"bada-homes0.biz": 1}
    assert [is_home(f"http://{host}{target}") for target in (home, "/~user-offers7/")] == [True, False]


def test_lines_are_counted_in_the_order_of_their_ends() -> None:
    """The log is in the order of ends of exchanges of several processes: not quite sorted."""
    found = timeline_of([page(2000, 2), page(1000, 1)], LEGIT, pld_of)
    assert found.seconds == 1.05


def test_curve_has_a_point_for_every_interval_and_the_end() -> None:
    """Nothing happens in the second interval; the point is there, and the same as the one before."""
    lines = [page(1000, 1), line(1500, SPAM[0], "/"), page(3500, 2)]
    found = timeline_of(lines, LEGIT, pld_of, interval_s=1)
    assert found.curve == (Point(1, 1, 1), Point(2, 1, 1), Point(2.55, 2, 1))


def test_an_empty_log_is_no_crawl() -> None:
    """Nothing fetched is an error, and no table of zeros."""
    with pytest.raises(ValueError, match="nothing"):
        timeline_of([page(1, 1, status=499)], LEGIT, pld_of)


def test_ratio_needs_both() -> None:
    assert ratio(3.0, 2.0) == 1.5
    assert ratio(None, 2.0) is ratio(3.0, None) is None
