from __future__ import annotations

import random
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ContractError
from bigcrawl_simweb.check.checker import Checker, CheckRules, Exchange, Report, check_exchanges
from bigcrawl_simweb.check.findings import HEADINGS, BadFetch, Refetch
from tests.support.crawling.exchanges import A, B, page

if TYPE_CHECKING:
    from bigcrawl_simweb.model.expectations import Expected

EXPECTED = {f"http://{A}/": 200, f"http://{A}/x": 404, f"http://{B}/": 200}
RULES = CheckRules(
    expected=EXPECTED,
    host_delay_ms=500,
    host_delays_ms={B: 800},
    server_delay_ms=400,
    allows=lambda host, target: not target.startswith("/private"),
)

ROBOTS_A = Exchange(0, 10, A, "/robots.txt", 200)
ROOT_A = Exchange(510, 600, A, "/", 200)
X_A = Exchange(1100, 1110, A, "/x", 404)
ROBOTS_B = Exchange(5, 20, B, "/robots.txt", 404)
ROOT_B = Exchange(820, 830, B, "/", 200)
POLITE = [ROBOTS_A, ROOT_A, X_A, ROBOTS_B, ROOT_B]


def test_polite_and_complete_crawl_is_ok():
    """A log that keeps every rule to the millisecond has no findings."""
    report = check_exchanges(POLITE, RULES)
    assert report.ok
    assert (report.requests, report.robots_requests, report.hosts) == (5, 2, 2)
    assert (report.coverage, report.overlap) == (1.0, 0)
    assert report.statuses == ((200, 3), (404, 2))
    assert str(report) == (
        "5 requests to 2 hosts, 2 of them for robots.txt\nanswers 200: 3, 404: 2\n"
        "coverage 1.0000 of 3 URLs, overlap 0\nok"
    )


def test_every_finding_counts():
    """No list of the report is left out of `ok` and of what is printed."""
    counts = {"requests", "robots_requests", "hosts", "statuses", "faults", "expected"}
    assert {field.name for field in fields(Report)} == counts | HEADINGS.keys()


def test_order_of_the_log_does_not_matter():
    """Servers log in the order of ends, several files in none; the checker sorts."""
    shuffled = list(POLITE)
    random.Random(1).shuffle(shuffled)
    assert check_exchanges(iter(shuffled), RULES) == check_exchanges(POLITE, RULES)


def test_sorted_log_needs_no_sorting():
    """A `Checker` takes exchanges as they started, and refuses others instead of misjudging them."""
    checker = Checker(RULES)
    for exchange in sorted(POLITE, key=lambda exchange: exchange.start_ms):
        checker.add(exchange)
    assert checker.report() == check_exchanges(POLITE, RULES)
    with pytest.raises(ContractError, match=r"at 820 comes after one at 1100; use check\(\)"):
        checker.add(ROOT_B)


@pytest.mark.parametrize(
    ("fault", "log"),
    [
        ("missing", [ROBOTS_A, ROOT_A, ROBOTS_B, ROOT_B]),
        ("unexpected", [*POLITE, page(9000, "/phantom", 404)]),
        ("wrong_status", [ROBOTS_A, ROOT_A, page(1100, "/x", 200), ROBOTS_B, ROOT_B]),
        ("refetched", [*POLITE, page(9000)]),
        ("host_too_soon", [ROBOTS_A, ROOT_A, page(1099, "/x", 404), ROBOTS_B, ROOT_B]),
        ("robots_not_first", [ROBOTS_A, ROOT_A, X_A, ROOT_B]),
        ("robots_not_first", [ROBOTS_A, ROOT_A, X_A, ROOT_B, Exchange(9000, 9001, B, "/robots.txt", 404)]),
        ("robots_not_first", [ROBOTS_A, ROOT_A, X_A, Exchange(0, 5, B, "/robots.txt", 503), ROOT_B]),
        ("concurrent", [ROBOTS_A, Exchange(510, 1200, A, "/", 200), X_A, ROBOTS_B, ROOT_B]),
    ],
)
def test_single_fault_is_found_and_no_other(fault: str, log: list[Exchange]):
    """Each violation planted in a polite log is found, under its name and no other."""
    report = check_exchanges(log, RULES)
    assert report.kinds == {fault}
    assert not report.ok


def test_disallowed_fetch_is_found():
    """Every fetch that robots.txt forbids is named, even when the page was expected, and by no other name."""
    url = f"http://{A}/private/1"
    log = [ROBOTS_A, page(20, "/private/1", 503), page(30, "/private/1")]
    answers: list[dict[str, int | Expected]] = [{url: 200}, {}]
    for expected in answers:
        report = check_exchanges(log, CheckRules(expected=expected, allows=RULES.allows, retries=1))
        assert report.kinds == {"disallowed"}
        assert report.disallowed == (BadFetch(url, 20), BadFetch(url, 30))


def test_crawl_delay_of_a_host_holds_for_it_alone():
    """A host with a longer delay is held to it, from the end of its robots.txt on."""
    report = check_exchanges([ROBOTS_A, ROOT_A, X_A, ROBOTS_B, Exchange(819, 830, B, "/", 200)], RULES)
    (gap,) = report.host_too_soon
    assert (gap.name, gap.gap_ms, gap.wanted_ms) == (B, 799, 800)


def test_aborted_exchange_is_a_fetch_but_no_answer():
    """What a client gave up does not cover a URL, and counts as a repetition when it comes back."""
    aborted = page(1100, "/x", 499)
    assert check_exchanges([ROBOTS_A, ROOT_A, aborted, ROBOTS_B, ROOT_B], RULES).kinds == {"missing"}
    again = check_exchanges([ROBOTS_A, ROOT_A, aborted, page(2000, "/x", 404), ROBOTS_B, ROOT_B], RULES)
    assert again.refetched == (Refetch(f"http://{A}/x", 2, 2000),)
    assert again.coverage == 1.0


def test_rude_log_is_found_out_in_everything():
    """A log with every fault has every finding, and says so in numbers and words."""
    rude = [
        page(0, end_ms=50),
        page(10, "/private/1", end_ms=20),
        page(60, end_ms=70),
        page(80, "/x", 500, retry_after_ms=0),
        page(90, "/x", 503, retry_after_ms=1000),
        page(100, "/aside"),
        page(110, "/calendar/1"),
        page(200, "/robots.txt"),
        page(210, "/robots.txt"),
        page(5000, "/calendar/2"),
        *(page(9000 + n, f"/phantom-{n}", 404, host=B) for n in range(30)),
    ]
    rules = CheckRules(
        expected=EXPECTED,
        host_delay_ms=500,
        server_delay_ms=400,
        pld_of=lambda host: "127",
        pld_delay_ms=20,
        retry_after_max_ms=1000,
        allows=RULES.allows,
        robots_max_age_ms=1000,
        robots_period_ms=1000,
        is_endless=lambda host, target: "calendar" in target,
        endless_max=1,
        nofollow={f"http://{A}/aside"},
    )
    report = check_exchanges(rude, rules)
    assert report.kinds == set(HEADINGS)
    assert report.coverage == pytest.approx(2 / 3)
    assert report.overlap == 2
    assert report.missing == (f"http://{B}/",)
    text = str(report)
    for line in (
        "40 requests to 2 hosts, 2 of them for robots.txt",
        "answers 200: 8, 404: 30, 500: 1, 503: 1",
        "coverage 0.6667 of 3 URLs, overlap 2",
        "and 20 more",
        f"http://{A}/x: 503 instead of 404",
        f"{A}: -40 ms instead of 0 ms between {A}/ (0 to 50) and {A}/private/1 (10 to 20)",
        f"http://{A}/private/1 at 10",
        f"http://{A}/calendar/2 at 5000, 4790 ms after robots.txt",
        f"http://{A}/: 2 times, last at 60",
        f"http://{A}/x: 1 retries instead of 0, last at 90",
        f"127: 2 URLs instead of 1, the first too many http://{A}/calendar/2 at 5000",
        "NOT ok",
    ):
        assert line in text


def test_rules_that_ask_for_nothing_find_nothing_but_overlap_in_time():
    """Without expectations any pages are right; without `allows` robots.txt plays no part."""
    assert check_exchanges([page(0, end_ms=1), page(1, "/y", 404)], CheckRules()).ok
    assert check_exchanges([], CheckRules()).ok
    assert not check_exchanges([], RULES).ok
