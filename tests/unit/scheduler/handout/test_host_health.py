"""Is it a page that fails, or its host? What a node says of a host, and how long that rests, after each outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.politeness.backoff_policy import BackoffPolicy
from bigcrawl.redisdb.scripts import ANSWERS, effect_of_move
from bigcrawl.scheduler.handout.host_health import (
    HOSTS_REMEMBERED,
    PAGES_MAX,
    PAGES_REMEMBERED,
    REST_LONGEST_MS,
    HostHealth,
)
from bigcrawl.scheduler.records.member import order_of
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.redisdb.scripts import EndedUrl
    from bigcrawl.scheduler.records.held import HeldUrl

DOUBTFUL = ["status:503", "error:timeout", "error:refused", "error:connection"]


class Fetches:
    """Pages of one host, each of which was fetched in its turn; by number."""

    def __init__(self, tmp_path: Path) -> None:
        self.desk = Desk(tmp_path)
        self._taken = 0

    def end(self, page: int, outcome: str, *, attempts: int = 0, retry_after_ms: int = 0) -> EndedUrl:
        """How the fetch ended, and what was told of it."""
        held = self._started(page, attempts)
        held.outcome, held.retry_after_ms = outcome, retry_after_ms
        self.desk.handout.fetches.end(held)
        assert held.end is not None
        return held.end

    def robots(self, page: int, said: str) -> EndedUrl:
        """The same of a fetch of robots.txt in a page's place."""
        held = self._started(page, 0)
        held.record_host_report(said)
        self.desk.handout.give_back(held, 1_000, "robots")
        assert held.end is not None
        return held.end

    def _started(self, page: int, attempts: int) -> HeldUrl:
        self._taken += 1
        held = self.desk.started(self._taken)
        held.fields = held.fields._replace(key=page, attempts=attempts)
        return held


@pytest.fixture
def fetches(tmp_path: Path) -> Fetches:
    return Fetches(tmp_path)


def says_failure(end: EndedUrl) -> bool:
    return end.effect.health not in ("", ANSWERS)


@pytest.mark.parametrize("outcome", DOUBTFUL)
def test_some_bad_pages_in_a_row_are_pages_and_the_next_is_the_host(fetches: Fetches, outcome: str) -> None:
    """Of a host that answers; and with an answer between them it is never the host."""
    for page in range(10):
        assert not says_failure(fetches.end(page, "status:200"))
        assert not says_failure(fetches.end(100 + page, outcome))
    fetches.end(0, "status:200")
    for page in range(PAGES_MAX):
        assert not says_failure(fetches.end(200 + page, outcome))
        assert not fetches.desk.handout.health.fails("a.example")
    assert says_failure(fetches.end(300, outcome))
    assert fetches.desk.handout.health.fails("a.example")
    assert says_failure(fetches.end(300, outcome, attempts=1)), "and it stays so"


@pytest.mark.parametrize("outcome", DOUBTFUL)
def test_host_that_never_answered_is_not_doubted(fetches: Fetches, outcome: str) -> None:
    """Nor one that has not answered since it failed; robots.txt is an answer."""
    assert says_failure(fetches.end(1, outcome))
    fetches.robots(2, "+")
    assert not says_failure(fetches.end(1, outcome, attempts=1))


@pytest.mark.parametrize(
    ("outcome", "retry_after_ms"),
    [("status:429", 0), ("status:429", 5_000), ("status:503", 5_000), ("error:dns", 0)],
)
def test_host_that_speaks_for_itself_is_not_doubted(fetches: Fetches, outcome: str, retry_after_ms: int) -> None:
    """Too many requests, Retry-After, no address: the first one counts."""
    fetches.end(0, "status:200")
    end = fetches.end(1, outcome, retry_after_ms=retry_after_ms)
    assert says_failure(end)
    assert end.delay_ms == max(1_000, retry_after_ms)


def test_page_that_fails_again_says_nothing_new(fetches: Fetches) -> None:
    """However often it is tried, and by whatever it fails."""
    fetches.end(0, "status:200")
    for attempts, outcome in enumerate([*DOUBTFUL, "status:500", *DOUBTFUL]):
        end = fetches.end(1, outcome, attempts=attempts)
        assert (says_failure(end), end.delay_ms) == (False, 2_000 if outcome == "status:503" else 1_000)
    assert fetches.desk.handout.health.bad_pages("a.example") == 1


def test_first_contact_may_be_at_a_dead_port(fetches: Fetches) -> None:
    """The host gets one more chance to answer, and no third."""
    assert [says_failure(fetches.robots(page, "robots")) for page in range(3)] == [False, True, True]


def test_port_where_nobody_listens_is_not_its_host(fetches: Fetches) -> None:
    """robots.txt of another authority of a host that answers: it is that authority's, however often."""
    fetches.robots(1, "+")
    ends = [fetches.robots(page, "robots") for page in range(5)]
    assert not any(map(says_failure, ends))
    assert [end.delay_ms for end in ends] == [1_000] * 5
    assert all(end.effect == effect_of_move(order_of(-1, end.seq)) for end in ends), (
        "its URL goes behind the host's others"
    )


@pytest.mark.parametrize("outcome", ["status:500", "error:dataloss"])
def test_host_rests_longer_the_more_of_its_pages_fail_in_a_row(fetches: Fetches, outcome: str) -> None:
    """A few are nothing; each further one doubles it, up to a bound; a good one ends it."""
    fetches.end(0, "status:200")
    rests = [fetches.end(page, outcome).delay_ms for page in range(1, 40)]
    assert rests[: PAGES_MAX + 4] == [*[1_000] * PAGES_MAX, 1_250, 2_500, 5_000, 10_000]
    assert max(rests) <= 1.5 * REST_LONGEST_MS
    assert fetches.desk.handout.health.bad_pages("a.example") == PAGES_REMEMBERED
    assert fetches.end(50, "status:200").delay_ms == 1_000
    assert fetches.end(51, outcome).delay_ms == 1_000


def test_503_makes_its_host_slower(fetches: Fetches) -> None:
    """Whether it is the page's or the host's, and whatever is tried again."""
    fetches.end(0, "status:200")
    assert [fetches.end(1, "status:503", attempts=n).delay_ms for n in range(3)] == [2_000] * 3


def test_hosts_that_are_remembered_are_bounded() -> None:
    """Those of which nothing was heard for longest are forgotten."""
    health = HostHealth(BackoffPolicy(1, 1, 1, 0), lambda: 0.5)
    for number in range(HOSTS_REMEMBERED + 10):
        health.record_answer(f"h{number}.example")
    assert len(health._answered) == HOSTS_REMEMBERED
