from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bigcrawl.exceptions import ContractError
from bigcrawl_simweb.check.checker import CheckRules, Exchange, check_exchanges
from tests.support.crawling.exchanges import B, page

# Retry-After is to be kept for up to an hour.
LISTENING = CheckRules(retry_after_max_ms=3_600_000)


def test_request_within_a_long_one_does_not_end_it():
    """Two short exchanges inside a long one both overlap it."""
    log = [page(0, "/1", end_ms=1000), page(10, "/2", end_ms=20), page(600, "/3", end_ms=610)]
    report = check_exchanges(log, CheckRules())
    assert [(gap.earlier.target, gap.later.target, gap.gap_ms) for gap in report.concurrent] == [
        ("/1", "/2", -990),
        ("/1", "/3", -400),
    ]


def test_exchanges_that_touch_are_not_concurrent():
    """A request that starts in the millisecond in which the last one ended came after it."""
    assert check_exchanges([page(0, "/1", end_ms=10), page(10, "/2"), page(10, "/3", end_ms=20)], CheckRules()).ok


def test_as_many_connections_as_allowed_and_no_more():
    """With two connections a third request at once is one too many, until one of the two has ended."""
    rules = CheckRules(host_connections=2)
    two = [page(0, "/1", end_ms=100), page(10, "/2", end_ms=50)]
    assert check_exchanges([*two, page(50, "/3")], rules).ok
    report = check_exchanges([*two, page(49, "/3", end_ms=60), page(60, "/4")], rules)
    assert [(gap.earlier.target, gap.later.target) for gap in report.concurrent] == [("/2", "/3")]


def test_delay_is_kept_between_starts_where_connections_are_several():
    """With more than one connection the next start waits for the last start, however long that one lasts."""
    rules = CheckRules(host_connections=2, host_delay_ms=100)
    assert check_exchanges([page(0, "/1", end_ms=999), page(100, "/2", end_ms=150), page(200, "/3")], rules).ok
    report = check_exchanges([page(0, "/1", end_ms=999), page(99, "/2", end_ms=150), page(199, "/3")], rules)
    assert [(gap.gap_ms, gap.wanted_ms) for gap in report.host_too_soon] == [(99, 100)]


def test_no_connections_at_all_is_no_rule():
    """A rule that nobody can keep is a mistake of the caller."""
    with pytest.raises(ContractError, match="pld_connections is 0; must be at least 1"):
        CheckRules(pld_connections=0)


def test_hosts_of_a_pld_share_its_delay_and_its_connections():
    """A PLD's rules hold across its hosts, beside those of each host, and for no other PLD."""
    rules = CheckRules(pld_of=lambda host: host.partition(".")[2], pld_delay_ms=100)
    first = page(0, host="a.example.com", end_ms=50)
    for host, start_ms, kinds in (
        ("b.example.com", 150, set()),
        ("b.example.com", 149, {"pld_too_soon"}),
        ("b.example.com", 49, {"pld_concurrent"}),
        ("b.example.org", 0, set()),
    ):
        report = check_exchanges([first, page(start_ms, host=host)], rules)
        assert report.kinds == kinds
    (gap,) = check_exchanges([first, page(49, host="b.example.com")], rules).pld_concurrent
    assert (gap.name, gap.gap_ms) == ("example.com", -1)


def test_server_gap_holds_for_all_hosts_of_an_address():
    """Hosts at one address share its gap, counted from start to start."""
    log = [Exchange(0, 10, "a", "/", 200, "192.0.2.1"), Exchange(399, 410, "b", "/", 200, "192.0.2.1")]
    report = check_exchanges([*log, Exchange(400, 420, "c", "/", 200, "192.0.2.2")], CheckRules(server_delay_ms=400))
    assert report.kinds == {"server_too_soon"}
    assert (report.server_too_soon[0].name, report.server_too_soon[0].gap_ms) == ("192.0.2.1", 399)


def test_tolerance_forgives_gaps_and_nothing_else():
    """A gap may fall short by the tolerance; overlapping requests stay a fault."""
    rules = CheckRules(host_delay_ms=500, server_delay_ms=500, tolerance_ms=5)
    assert check_exchanges([page(0, "/1"), page(495, "/2")], rules).ok
    assert not check_exchanges([page(0, "/1"), page(494, "/2")], rules).ok
    assert not check_exchanges([page(0, "/1", end_ms=10), page(9, "/2")], CheckRules(tolerance_ms=5)).ok


@pytest.mark.parametrize("left", [{"status": 499}, {"fault": "silent"}, {"fault": "stalled"}, {"fault": "endless"}])
def test_tolerance_covers_the_time_a_server_takes_to_notice_that_a_client_left(left: dict[str, Any]):
    """Who breaks an answer off may ask for the next at once, though the log may end the first a little later."""
    rules = CheckRules(tolerance_ms=5)
    log = [page(0, "/1", end_ms=100, **left)]
    assert check_exchanges([*log, page(95, "/2")], rules).ok
    assert check_exchanges([*log, page(94, "/2")], rules).kinds == {"concurrent"}
    assert check_exchanges([page(0, "/1", end_ms=100, fault="cut"), page(99, "/2")], rules).kinds == {"concurrent"}


def test_retry_after_is_kept_by_every_request_to_the_host():
    """After 429 or 503 the host is left alone for what Retry-After says, counted from the answer's end."""
    for status in (429, 503):
        told = page(0, "/busy", status, end_ms=10, retry_after_ms=1000)
        assert check_exchanges([told, page(1010, "/x")], LISTENING).ok
        assert check_exchanges([told, page(500, "/x", host=B)], LISTENING).ok
        report = check_exchanges([told, page(300, "/robots.txt"), page(1009, "/x"), page(1010, "/y")], LISTENING)
        assert report.kinds == {"retry_after_ignored"}
        assert [(gap.gap_ms, gap.wanted_ms) for gap in report.retry_after_ignored] == [(290, 1000), (999, 1000)]
        assert check_exchanges([told, page(1009, "/x")], replace(LISTENING, tolerance_ms=1)).ok


def test_longest_of_several_retry_afters_counts():
    """A shorter one that comes later does not shorten the first."""
    log = [page(0, "/1", 503, retry_after_ms=5000), page(10, "/2", 503, retry_after_ms=10), page(30, "/3")]
    report = check_exchanges(log, LISTENING)
    assert [(gap.earlier.target, gap.later.target) for gap in report.retry_after_ignored] == [
        ("/1", "/2"),
        ("/1", "/3"),
    ]


@pytest.mark.parametrize(
    "told",
    [
        page(0, "/busy", 200, retry_after_ms=1000),
        page(0, "/busy", 503, fault="reset", retry_after_ms=1000),
        page(0, "/busy", 499, retry_after_ms=1000),
    ],
)
def test_retry_after_that_nobody_heard_binds_nobody(told: Exchange):
    """It counts with 429 and 503 only, and only when the answer arrived."""
    assert check_exchanges([told, page(10, "/x")], LISTENING).ok


def test_request_under_way_when_the_answer_came_does_not_break_the_silence():
    """Over a second connection a request may cross the answer that would have stopped it."""
    told = page(0, "/busy", 503, end_ms=10, retry_after_ms=1000)
    rules = replace(LISTENING, host_connections=2, tolerance_ms=3)
    assert check_exchanges([told, page(9, "/x"), page(13, "/y")], rules).ok
    assert check_exchanges([told, page(14, "/z")], rules).kinds == {"retry_after_ignored"}
    assert check_exchanges([told, page(10, "/z")], LISTENING).kinds == {"retry_after_ignored"}


def test_retry_after_beyond_the_cap_is_kept_up_to_the_cap():
    """Some servers ask for a year; and nothing is asked for by rules that do not say so."""
    told = page(0, "/busy", 503, retry_after_ms=10**10)
    assert check_exchanges([told, page(1, "/x")], CheckRules()).ok
    rules = CheckRules(retry_after_max_ms=500)
    assert check_exchanges([told, page(500, "/x")], rules).ok
    (gap,) = check_exchanges([told, page(499, "/x")], rules).retry_after_ignored
    assert gap.wanted_ms == 500
