from __future__ import annotations

import random
from dataclasses import fields

import pytest

from bigcrawl.simweb.checker import Exchange, Refetch, Report, Rules, StatusDifference, check

A, B = "127.16.0.1", "127.16.0.2"
EXPECTED = {f"http://{A}/": 200, f"http://{A}/x": 404, f"http://{B}/": 200}
RULES = Rules(
    expected=EXPECTED,
    host_delay_ms=500,
    host_delays_ms={B: 800},
    server_delay_ms=400,
    allows=lambda host, target: not target.startswith("/private"),
)
FINDINGS = (
    *("missing", "unexpected", "wrong_status", "refetched", "concurrent", "host_too_soon"),
    *("server_too_soon", "disallowed", "robots_not_first"),
)

ROBOTS_A = Exchange(0, 10, A, "/robots.txt", 200)
ROOT_A = Exchange(510, 600, A, "/", 200)
X_A = Exchange(1100, 1110, A, "/x", 404)
ROBOTS_B = Exchange(5, 20, B, "/robots.txt", 404)
ROOT_B = Exchange(820, 830, B, "/", 200)
POLITE = [ROBOTS_A, ROOT_A, X_A, ROBOTS_B, ROOT_B]


def faults(report: Report) -> set[str]:
    return {name for name in FINDINGS if getattr(report, name)}


def test_polite_and_complete_crawl_is_ok():
    """A log that keeps every rule to the millisecond has no findings."""
    report = check(POLITE, RULES)
    assert report.ok
    assert (report.requests, report.robots_requests, report.hosts) == (5, 2, 2)
    assert (report.coverage, report.overlap) == (1.0, 0)
    assert str(report).endswith("ok")
    assert "NOT" not in str(report)


def test_every_finding_counts():
    """No list of the report is left out of `ok` and of what is printed."""
    assert {field.name for field in fields(Report)} == {
        *("requests", "robots_requests", "hosts", "expected"),
        *FINDINGS,
    }


def test_page_in_the_millisecond_of_robots_txt_came_after_it():
    """A log of milliseconds cannot tell two quick exchanges apart; robots.txt is taken for the first."""
    log = [Exchange(5, 5, A, "/", 200), Exchange(5, 5, A, "/robots.txt", 200)]
    assert check(log, Rules(allows=lambda host, target: True)).ok


def test_order_of_the_log_does_not_matter():
    """Servers log in the order of ends, several files in none; the checker sorts."""
    shuffled = list(POLITE)
    random.Random(1).shuffle(shuffled)
    assert check(iter(shuffled), RULES) == check(POLITE, RULES)


@pytest.mark.parametrize(
    ("fault", "log"),
    [
        ("missing", [ROBOTS_A, ROOT_A, ROBOTS_B, ROOT_B]),
        ("unexpected", [*POLITE, Exchange(9000, 9001, A, "/phantom", 404)]),
        ("wrong_status", [ROBOTS_A, ROOT_A, Exchange(1100, 1110, A, "/x", 200), ROBOTS_B, ROOT_B]),
        ("refetched", [*POLITE, Exchange(9000, 9001, A, "/", 200)]),
        ("host_too_soon", [ROBOTS_A, ROOT_A, Exchange(1099, 1110, A, "/x", 404), ROBOTS_B, ROOT_B]),
        ("robots_not_first", [ROBOTS_A, ROOT_A, X_A, ROOT_B]),
        ("robots_not_first", [ROBOTS_A, ROOT_A, X_A, ROOT_B, Exchange(9000, 9001, B, "/robots.txt", 404)]),
        ("concurrent", [ROBOTS_A, Exchange(510, 1200, A, "/", 200), X_A, ROBOTS_B, ROOT_B]),
    ],
)
def test_single_fault_is_found_and_no_other(fault: str, log: list[Exchange]):
    """Each violation planted in a polite log is found, under its name and no other."""
    report = check(log, RULES)
    assert faults(report) == {fault}
    assert not report.ok


def test_disallowed_fetch_is_found():
    """A fetch that robots.txt forbids is named, even when the page was expected."""
    url = f"http://{A}/private/1"
    rules = Rules(expected={url: 200}, allows=RULES.allows)
    report = check([ROBOTS_A, Exchange(20, 30, A, "/private/1", 200)], rules)
    assert faults(report) == {"disallowed"}
    assert report.disallowed == (url,)


def test_crawl_delay_of_a_host_holds_for_it_alone():
    """A host with a longer delay is held to it, from the end of its robots.txt on."""
    report = check([ROBOTS_A, ROOT_A, X_A, ROBOTS_B, Exchange(819, 830, B, "/", 200)], RULES)
    (gap,) = report.host_too_soon
    assert (gap.name, gap.gap_ms, gap.wanted_ms) == (B, 799, 800)


def test_request_within_a_long_one_does_not_end_it():
    """Two short exchanges inside a long one both overlap it."""
    log = [Exchange(0, 1000, A, "/1", 200), Exchange(10, 20, A, "/2", 200), Exchange(600, 610, A, "/3", 200)]
    report = check(log, Rules())
    assert [(gap.earlier.target, gap.later.target) for gap in report.concurrent] == [
        ("/1", "/2"),
        ("/1", "/3"),
    ]


def test_exchanges_that_touch_are_not_concurrent():
    """A request that starts in the millisecond in which the last one ended came after it."""
    assert check([Exchange(0, 10, A, "/1", 200), Exchange(10, 20, A, "/2", 200)], Rules()).ok


def test_server_gap_holds_for_all_hosts_of_an_address():
    """Hosts at one address share its gap, counted from start to start."""
    log = [Exchange(0, 10, "a", "/", 200, "192.0.2.1"), Exchange(399, 410, "b", "/", 200, "192.0.2.1")]
    report = check([*log, Exchange(400, 420, "c", "/", 200, "192.0.2.2")], Rules(server_delay_ms=400))
    assert faults(report) == {"server_too_soon"}
    assert report.server_too_soon[0].gap_ms == 399


def test_tolerance_forgives_gaps_and_nothing_else():
    """A gap may fall short by the tolerance; overlapping requests stay a fault."""
    rules = Rules(host_delay_ms=500, server_delay_ms=500, tolerance_ms=5)
    assert check([Exchange(0, 0, A, "/1", 200), Exchange(495, 500, A, "/2", 200)], rules).ok
    assert not check([Exchange(0, 0, A, "/1", 200), Exchange(494, 500, A, "/2", 200)], rules).ok
    assert not check([Exchange(0, 10, A, "/1", 200), Exchange(9, 20, A, "/2", 200)], Rules(tolerance_ms=5)).ok


def test_retries_of_failures_are_allowed_as_often_as_the_rules_say():
    """After 429 or 5xx a URL may be asked for again; more often, or after success, is overlap."""

    def overlap(retries: int, *statuses: int) -> int:
        log = [Exchange(n, n, A, "/", status) for n, status in enumerate(statuses)]
        return check(log, Rules(retries=retries)).overlap

    assert overlap(0, 503, 200) == 1
    assert overlap(2, 503, 429, 200) == overlap(2, 500, 500, 500) == 0
    assert overlap(2, 503, 503, 503, 200) == 1
    assert overlap(2, 200, 200) == 1
    assert overlap(2, 499, 200) == 1


def test_aborted_exchange_is_a_fetch_but_no_answer():
    """What a client gave up does not cover a URL, and counts as a repetition when it comes back."""
    aborted = Exchange(1100, 1110, A, "/x", 499)
    assert faults(check([ROBOTS_A, ROOT_A, aborted, ROBOTS_B, ROOT_B], RULES)) == {"missing"}
    again = check([ROBOTS_A, ROOT_A, aborted, Exchange(2000, 2001, A, "/x", 404), ROBOTS_B, ROOT_B], RULES)
    assert again.refetched == (Refetch(f"http://{A}/x", 2),)
    assert again.coverage == 1.0


def test_rude_crawler_is_found_out_in_everything():
    """A log with every fault has every finding, and says so in numbers and words."""
    rude = [
        Exchange(0, 50, A, "/", 200),
        Exchange(10, 20, A, "/private/1", 200),
        Exchange(60, 70, A, "/", 200),
        Exchange(80, 90, A, "/x", 500),
        *(Exchange(1000 + n, 1000 + n, B, f"/phantom-{n}", 404) for n in range(30)),
    ]
    report = check(rude, RULES)
    assert faults(report) == set(FINDINGS)
    assert report.coverage == pytest.approx(2 / 3)
    assert report.overlap == 1
    assert report.missing == (f"http://{B}/",)
    assert report.wrong_status == (StatusDifference(f"http://{A}/x", 404, 500),)
    assert set(report.robots_not_first) == {A, B}
    text = str(report)
    for line in (
        "coverage 0.6667 of 3 URLs, overlap 1",
        "and 21 more",
        f"http://{A}/x: 500 instead of 404",
        "NOT ok",
    ):
        assert line in text


def test_rules_that_ask_for_nothing_find_nothing_but_overlap_in_time():
    """Without expectations any pages are right; without `allows` robots.txt plays no part."""
    assert check([Exchange(0, 1, A, "/", 200), Exchange(1, 2, A, "/y", 404)], Rules()).ok
    assert check([], Rules()).ok
    assert not check([], RULES).ok
