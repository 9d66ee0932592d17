"""Rules of one process: kept, renewed, and held on to while a server errs; by a clock that the test owns."""

from __future__ import annotations

import pytest

from bigcrawl.politeness.robots_cache import ATTEMPTS_SOON, RobotsCache
from bigcrawl.politeness.robots_policy import KEPT_MS

SITE = "http://a.example"
PAGE = SITE + "/no/page"
RULES = b"User-agent: *\nDisallow: /no\n"


def test_rules_hold_for_a_day_and_are_asked_for_again() -> None:
    """Unknown, known, and unknown again when their time is over."""
    cache = RobotsCache("bot")
    assert cache.known_rules(SITE, 0) is None
    put = cache.store_response(SITE, 200, RULES, 0, 0.0)
    assert not put.rules.is_allowed(PAGE)
    assert cache.known_rules(SITE, KEPT_MS - 1) is put
    assert cache.known_rules(SITE, KEPT_MS) is None


def test_caller_says_how_long_an_answer_is_kept() -> None:
    """An answer's own time counts for 2xx and 4xx; a server that errs is asked again by back-off."""
    cache = RobotsCache("bot")
    assert cache.store_response(SITE, 200, RULES, 0, 0.0, 5_000).expires_ms == 5_000
    assert cache.store_response(SITE, 404, b"", 0, 0.0, 5_000).expires_ms == 5_000
    assert cache.store_response("http://b.example", 500, b"", 0, 0.0, 5_000).expires_ms == 10_000


@pytest.mark.parametrize("status", [None, 429, 500, 503])
def test_out_of_reach_forbids_all_with_back_off(status: int | None) -> None:
    """Asked again soon, twice, and then less and less often; an answer ends it."""
    cache = RobotsCache("bot")
    waits, now_ms = [], 0
    for attempt in range(1, 6):
        kept = cache.store_response(SITE, status, RULES, now_ms, 0.0)
        assert kept.is_unreachable
        assert kept.is_asked_again_soon is (attempt <= ATTEMPTS_SOON)
        assert not kept.rules.is_allowed(SITE + "/")
        waits.append(kept.expires_ms - now_ms)
        now_ms = kept.expires_ms
    assert waits == [10_000, 20_000, 240_000, 480_000, 960_000]
    good = cache.store_response(SITE, 200, RULES, now_ms, 0.0)
    assert good.rules.is_allowed(SITE + "/")
    assert good.attempts == 0


@pytest.mark.parametrize("status", [None, 429, 500])
def test_last_good_copy_holds_while_the_server_errs(status: int | None) -> None:
    """Its rules go on to allow and forbid what they did, and robots.txt is asked for again with back-off."""
    cache = RobotsCache("bot")
    cache.store_response(SITE, 200, RULES, 0, 0.0)
    for attempt in range(1, 5):
        kept = cache.store_response(SITE, status, b"", KEPT_MS * attempt, 0.0)
        assert not kept.is_unreachable
        assert kept.rules.is_allowed(SITE + "/yes")
        assert not kept.rules.is_allowed(PAGE)
        assert 0 < kept.expires_ms - KEPT_MS * attempt < KEPT_MS
    assert cache.store_response(SITE, 404, b"", KEPT_MS * 9, 0.0).rules.is_allowed(PAGE)


def test_absence_is_held_on_to_as_well() -> None:
    """Where there was no robots.txt, a server that errs does not forbid what it allowed."""
    cache = RobotsCache("bot")
    cache.store_response(SITE, 404, b"", 0, 0.0)
    kept = cache.store_response(SITE, 503, b"", KEPT_MS, 0.0)
    assert kept.rules.is_allowed(PAGE)
    assert not kept.is_unreachable


def test_number_of_authorities_is_bounded() -> None:
    """The one not used for the longest goes first."""
    cache = RobotsCache("bot", entries_max=3)
    for name in "abc":
        cache.store_response(name, 200, RULES, 0, 0.0)
    assert cache.known_rules("a", 1)
    cache.store_response("d", 200, RULES, 1, 0.0)
    assert len(cache) == 3
    assert cache.known_rules("b", 2) is None
    assert cache.known_rules("a", 2)


def test_length_of_all_rules_is_bounded() -> None:
    """Long files push out those not used, whatever their number; the one that was just asked for stays."""
    cache = RobotsCache("bot", chars_max=1_000)
    for number in range(100):
        cache.store_response(str(number), 200, b"User-agent: *\nDisallow: /" + b"x" * 300, 0, 0.0)
    assert len(cache) == 3
    cache.store_response("99", 200, b"User-agent: *\nDisallow: /" + b"x" * 5_000, 0, 0.0)
    assert len(cache) == 1
    assert cache.known_rules("99", 1)
    cache.store_response("99", 404, b"", 1, 0.0)
    cache.store_response("1", 200, RULES, 1, 0.0)
    assert len(cache) == 2
