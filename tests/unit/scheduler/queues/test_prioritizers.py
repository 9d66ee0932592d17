"""Prioritizers: built-in ones, a user's, and what becomes of URLs if one fails."""

from __future__ import annotations

import logging
from math import log
from typing import Any

import numpy as np
import pytest

from bigcrawl.config import FrontierConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.revisiting.change_rate import change_rate
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import PERIODIC
from bigcrawl.revisiting.visit import Answer, next_visit
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts, InDegreeRanks
from bigcrawl.scheduler.queues import prioritizers
from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.scheduler.queues.prioritizers import FoundUrls, SafePrioritizer, as_given, make_prioritizer
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from tests.support.keys import url_key

NAME = f"{__name__}.Shortest"
RANKS = InDegreeRanks(InDegreeCounts.of(np.array([1, 2, 30, 500], dtype=np.uint32)))


class Shortest:
    """A user's: the shorter the URL, the sooner."""

    def __call__(self, found: FoundUrls) -> Any:
        return [100 - len(url) for url in found.urls]


def too_few(found: FoundUrls) -> Any:
    """A user's, for which a batch is always empty."""
    return found.given[1:]


def broken(found: FoundUrls) -> Any:
    """A user's that fails on a host that no trial has."""
    if "b.example" in found.hosts:
        raise ZeroDivisionError("no reason")
    return found.given


def fractions(found: FoundUrls) -> Any:
    """A user's that forgets to make priorities of its scores."""
    return np.full(len(found), 0.5)


def url(address: str, *, depth: int = 1, priority: int = 0, **fields: Any) -> QueuedUrl:
    return links_encoder(Links([address], priority=priority, **fields), depth)(url_key(address), address)


def priorities(
    name: str, urls: list[QueuedUrl], in_degrees: list[int] | None = None, divisors: list[int] | None = None
) -> list[int]:
    prioritizer = make_prioritizer(name)
    assert prioritizer is not None
    counts = np.array(in_degrees or [0] * len(urls), dtype=np.uint32)
    traps = None if divisors is None else np.array(divisors, dtype=np.uint32)
    found = SafePrioritizer(prioritizer, RANKS).prioritize(urls, counts, traps)
    assert [(each.key, each.body) for each in found] == [(each.key, each.body) for each in urls]
    return [each.priority for each in found]


def some(count: int) -> list[QueuedUrl]:
    return [url(f"http://{n}.example/") for n in range(count)]


def test_in_degree_is_the_priority() -> None:
    """Each level is a decade of it; it ends where priorities do."""
    assert priorities("in-degree", some(4), [0, 7, 4000, 2**32 - 1]) == [0, 7, 4000, (1 << 19) - 1]


def test_rank_is_on_a_logarithmic_scale() -> None:
    """The first of the crawl is urgent, one that nobody links to is ordinary, and better is never later."""
    found = priorities("rank", some(5), [0, 1, 2, 30, 500])
    assert found == sorted(found)
    assert [level_of(found[at]) for at in (0, -1)] == [1, 4]
    nobody = SafePrioritizer(
        prioritizers.PRIORITIZERS["rank"](), InDegreeRanks(InDegreeCounts.of(np.array([], dtype=np.uint32)))
    )
    assert [each.priority for each in nobody.prioritize(some(1), np.array([3], dtype=np.uint32), None)] == [0]


def test_a_trap_has_no_quality() -> None:
    """However many link to it, it comes after all others."""
    assert priorities("quality", some(2), [500, 500], [1, 10]) == [1000, -1]
    assert priorities("quality", some(1), [500]) == [1000]


def test_depth_goes_down_by_hops() -> None:
    """A start is urgent, what it leads to is high, and nothing is ordinary however deep."""
    found = priorities("depth", [url(f"http://{n}.example/", depth=n) for n in (0, 1, 2, 3, 40)])
    assert [level_of(priority) for priority in found] == [4, 3, 3, 2, 2]


def test_the_spiders_priority_stays_with_a_built_in_prioritizer() -> None:
    """It scores what the spider left ordinary, in a batch of links with or without a callback."""
    urls = [
        url("http://a.example/", priority=5),
        url("http://b.example/", priority=-5, callback="parse_it"),
        url("http://c.example/", callback="parse_it", meta={"a": 1}),
    ]
    assert priorities("in-degree", urls, [70, 70, 70]) == [5, -5, 70]


def test_urls_are_scored_again_from_what_the_spider_gave() -> None:
    """What a queue made of the priority before does not count, except that failed tries stay behind."""
    before = url("http://a.example/")._replace(priority=4000)
    assert priorities("in-degree", [before], [3]) == [3]
    failed = before._replace(priority=-2, flags=UNCHECKED)
    assert priorities("in-degree", [failed, failed._replace(flags=0)], [3, 3]) == [-2, 3]


def test_a_function_of_ones_own() -> None:
    """It is named by its path; a class is made once; it sees URL, depth and priority of any body."""
    assert priorities(NAME, [url("http://a.example/"), url("http://a.example/long")]) == [83, 79]
    found = FoundUrls(
        [url("http://a.example/", depth=3, priority=7), QueuedUrl(1, "b.example", 2, 0, b"damaged")],
        np.zeros(2, dtype=np.uint32),
        np.zeros(2, dtype=np.bool_),
        RANKS,
    )
    assert (found.urls, found.hosts) == (["http://a.example/", ""], ["a.example", "b.example"])
    assert (found.depths.tolist(), found.given.tolist()) == ([3, 0], [7, 2])


def test_prioritizer_sees_the_visits_of_a_page() -> None:
    """How often it changed, and the status, type and charset of its last answer; nothing of a URL never visited."""
    page = Answer(200, b"digest", media_type="text/html", charset="euc-jp")
    policy = RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000))
    visit = next_visit(next_visit(None, page, 0, policy), page._replace(digest=b"other"), 100, policy)
    assert visit is not None
    new, bad = url("http://a.example/new"), QueuedUrl(1, "a.example", 0, 0, b"damaged")
    known = new._replace(body=with_known(new.body, visit.pack()))
    nobody = np.zeros(3, dtype=np.uint32)
    found = FoundUrls([known, new, bad], nobody, nobody > 0, RANKS)
    assert found.visits == [visit, None, None]
    assert (visit.status, visit.media_type, visit.charset, visit.last_s) == (200, "text/html", "euc-jp", 100)
    assert found.change_rates.tolist() == [change_rate(visit.history), 0, 0]
    assert found.change_rates[0] == pytest.approx(-log((1 - 1 + 0.5) / (1 + 0.5)) / 100, rel=1e-3)


def test_pages_that_change_daily_come_before_those_that_do_not() -> None:
    """Of the first PLD by links; a new URL counts as its PLD, a trap never comes first."""
    page = Answer(200, b"digest")
    policy, day = RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000)), 86_400

    def visited(digests: list[bytes]) -> QueuedUrl:
        new, visit = url("http://a.example/"), None
        for number, digest in enumerate(digests):
            visit = next_visit(visit, page._replace(digest=digest), number * day, policy)
        assert visit is not None
        return new._replace(body=with_known(new.body, visit.pack()))

    same, often = visited([b"x"] * 20), visited([b"%d" % number for number in range(20)])
    urls = [often, same, url("http://a.example/new"), often]
    first, never, new, trap = priorities("changes", urls, [500] * 4, [1, 1, 1, 20])
    assert first == new > never == 0 > trap


def test_a_failure_loses_no_url(caplog: pytest.LogCaptureFixture) -> None:
    """URLs keep what they have, and the log says so once."""
    with caplog.at_level(logging.ERROR):
        prioritizing = SafePrioritizer(broken, RANKS)
        for _ in range(3):
            urls = [url("http://b.example/", priority=3)]
            assert prioritizing.prioritize(urls, np.zeros(1, dtype=np.uint32), None) == urls
    [record] = caplog.records
    assert "BIGCRAWL_PRIORITIZER failed for 1 URLs" in record.getMessage()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("indegree", "did you mean in-degree"),
        ("nonsense", "must be one of in-degree, rank, quality, changes, depth, opic, or the import path"),
        ("no.such.module", "cannot be imported"),
        (f"{__name__}.NAME", "a str; must be a function"),
        (f"{__name__}.too_few", "failed in a trial: it returned int64 numbers of shape"),
        (f"{__name__}.fractions", r"must be 2 whole numbers, e.g. bigcrawl.scoring.scores.priorities_of"),
    ],
)
def test_a_wrong_setting_ends_the_start(name: str, message: str) -> None:
    """One line says what is wrong and what to write."""
    with pytest.raises(ConfigError, match=message):
        make_prioritizer(name)


def test_links_are_counted_if_they_may_be_asked_for() -> None:
    """Depth needs none, and without a prioritizer only budgets do."""
    assert make_prioritizer("") is None
    names = ("", "depth", "in-degree", "rank", "changes", "my.own")
    assert [FrontierConfig(prioritizer=name).counts_links for name in names] == [0, 0, 1, 1, 1, 1]


def test_the_highest_priority_of_any_page_counts() -> None:
    """If a feature knows what other pages gave, that is what the spider gave; without any it is as before."""
    urls = [url("http://a.example/", priority=5), url("http://b.example/", priority=-5)]
    nobody = np.zeros(2, dtype=np.uint32)
    for known, expected in (({}, [5, -5]), ({"given": np.array([3, -2])}, [5, -2])):
        found = SafePrioritizer(as_given, RANKS).prioritize(urls, nobody, None, known)
        assert [each.priority for each in found] == expected
        assert FoundUrls(urls, nobody, nobody > 0, RANKS, known).received.tolist() == [0, 0]
