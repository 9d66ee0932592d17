from __future__ import annotations

import pytest

from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from bigcrawl_simweb.check.findings import BadFetch, DeepDive, OverRetry, StatusDifference
from bigcrawl_simweb.model.expectations import Expected
from tests.support.crawling.exchanges import A, B, page


def test_failure_in_the_millisecond_of_its_retry_came_before_it():
    """Of two answers to one URL in the same millisecond the failure is taken for the first, unless it lasted."""
    log = [page(5), page(5, status=503)]
    assert check_exchanges(log, CheckRules(retries=1)).ok
    assert check_exchanges([page(5), page(5, status=503, end_ms=6)], CheckRules(retries=1)).kinds == {"refetched"}
    left_late = page(5, fault="stalled", end_ms=8)
    assert check_exchanges([page(5), left_late], CheckRules(retries=1, tolerance_ms=3)).ok
    assert check_exchanges([page(5), left_late], CheckRules(retries=1)).kinds == {"refetched"}


def test_retries_of_failures_are_allowed_as_often_as_the_rules_say():
    """After 429, 5xx or a fault a URL may be asked for again; more often, or after success, is overlap."""

    def outcome(retries: int, *statuses: int) -> tuple[int, set[str]]:
        report = check_exchanges(
            [page(n, status=status) for n, status in enumerate(statuses)], CheckRules(retries=retries)
        )
        return report.overlap, set(report.kinds)

    assert outcome(0, 503, 200) == (1, {"over_retried"})
    assert outcome(2, 503, 429, 200) == outcome(2, 500, 500, 500) == (0, set())
    assert outcome(2, 503, 503, 503, 503, 200) == (2, {"over_retried"})
    assert outcome(2, 200, 200) == (1, {"refetched"})
    assert outcome(2, 499, 200) == (1, {"refetched"})
    assert outcome(1, 503, 200, 503, 200) == (2, {"over_retried", "refetched"})
    report = check_exchanges([page(n, status=503) for n in range(4)], CheckRules(retries=1))
    assert report.over_retried == (OverRetry(f"http://{A}/", 3, 1, 3),)


def test_answer_that_cannot_be_received_may_be_asked_for_again():
    """The server's faults are not the crawler's: the URL counts as fetched, its status is not looked at."""
    rules = CheckRules(expected={f"http://{A}/": 404}, retries=1)
    for fault in ("reset", "silent", "stalled", "cut", "endless", "short"):
        assert check_exchanges([page(0, fault=fault), page(9, status=499, fault=fault)], rules).ok
        assert check_exchanges([page(n, fault=fault) for n in range(3)], rules).kinds == {"over_retried"}
        assert check_exchanges([page(0, fault=fault), page(9, status=404)], rules).ok
        assert check_exchanges([page(0, fault=fault), page(9, status=200)], rules).kinds == {"wrong_status"}
        assert check_exchanges([page(0, fault=fault), page(9, status=499)], rules).ok
    assert check_exchanges([page(0, fault="cut"), page(9, fault="cut")], rules).faults == (("cut", 2),)


@pytest.mark.parametrize("fault", ["", "-", "long"])
def test_answer_that_is_whole_is_an_answer(fault: str):
    """A body that is longer than told is all that a client could want."""
    report = check_exchanges([page(0, fault=fault), page(1, fault=fault)], CheckRules(retries=5))
    assert report.kinds == {"refetched"}
    assert not report.faults


def test_several_statuses_may_be_right():
    """An `Expected` lists them; with 499 among them the client may give up."""
    rules = CheckRules(expected={f"http://{A}/": Expected(frozenset({200, 304}))})
    assert check_exchanges([page(0, status=304)], rules).ok
    report = check_exchanges([page(0, status=404)], rules)
    assert report.wrong_status == (StatusDifference(f"http://{A}/", frozenset({200, 304}), 404),)
    assert "404 instead of 200 or 304" in str(report)
    assert check_exchanges([page(0, status=499)], rules).kinds == {"missing"}
    assert check_exchanges(
        [page(0, status=499)], CheckRules(expected={f"http://{A}/": Expected(frozenset({200, 499}))})
    ).ok


def test_what_may_be_left_out_is_not_missed():
    """A URL that is not required is none of the coverage, and is held to its statuses when it was fetched."""
    optional = Expected(frozenset({200}), required=False)
    rules = CheckRules(expected={f"http://{A}/": 200, f"http://{A}/maybe": optional})
    assert check_exchanges([page(0)], rules).ok
    assert check_exchanges([], rules).expected == 1
    assert check_exchanges([], rules).coverage == 0.0
    assert check_exchanges([page(0), page(1, "/maybe", 404)], rules).kinds == {"wrong_status"}


def test_expected_urls_are_found_by_their_canonical_form():
    """Port 80 is left out, any other is part of the URL, and so are query and name."""
    log = [page(0, "/a?b=/c", host="www.example.com")]
    assert check_exchanges(log, CheckRules(expected={"http://www.example.com/a?b=/c": 200})).ok
    assert check_exchanges(log, CheckRules(expected={"http://www.example.com:8080/a?b=/c": 200}, port=8080)).ok
    assert check_exchanges(log, CheckRules(expected={"http://www.example.com:80/a?b=/c": 200})).kinds == {
        "missing",
        "unexpected",
    }
    assert check_exchanges(log, CheckRules(expected={"https://www.example.com/a?b=/c": 200})).kinds == {
        "missing",
        "unexpected",
    }


def test_infinite_spaces_are_entered_no_deeper_than_allowed():
    """Their URLs are neither missed nor phantoms, but counted, for all hosts of a PLD together."""
    rules = CheckRules(
        expected={},
        is_endless=lambda host, target: target.startswith("/calendar/"),
        endless_max=3,
        pld_of=lambda host: "spam",
    )
    log = [page(n, f"/calendar/{n}", host=(A, B)[n % 2]) for n in range(5)]
    assert check_exchanges(log[:3], rules).ok
    report = check_exchanges(log, rules)
    assert report.kinds == {"too_deep"}
    assert report.too_deep == (DeepDive("spam", 5, 3, f"http://{B}/calendar/3", 3),)
    assert check_exchanges(log, CheckRules(expected={}, is_endless=rules.is_endless)).ok
    assert check_exchanges(log, CheckRules(expected={}, is_endless=rules.is_endless, endless_max=3)).ok
    assert (
        check_exchanges(log, CheckRules(expected={}, is_endless=rules.is_endless, endless_max=2)).too_deep[0].name == A
    )


def test_pages_behind_nofollow_links_are_named_as_such():
    """They are reported whether or not any set of pages is right, and not as phantoms."""
    url = f"http://{A}/aside"
    for rules in (CheckRules(nofollow={url}), CheckRules(nofollow={url}, expected={})):
        report = check_exchanges([page(7, "/aside")], rules)
        assert report.kinds == {"nofollowed"}
        assert report.nofollowed == (BadFetch(url, 7),)
