"""How often hosts that fail are tried by a node that is behind, and by one that is not."""

from __future__ import annotations

import pytest

from bigcrawl.scheduler.failing_share import BEHIND_MS, CREDIT_MAX, REST_MS_MAX, SHARE, TRIES_A_SECOND, FailingShare

LONG_MS = 1_000_000


def behind(late_ms: int = 30_000) -> FailingShare:
    """A share of a node that is so far behind and has used all its tries."""
    share = FailingShare()
    for _ in range(1_000):
        share.note_taken(late_ms)
    while not share.rest_ms(LONG_MS):
        pass
    return share


def test_node_that_is_not_behind_tries_whatever_is_due() -> None:
    """A host's back-off is all that counts then."""
    share = FailingShare()
    for _ in range(1_000):
        share.note_taken(BEHIND_MS - 1)
        assert share.rest_ms(LONG_MS) == 0


def test_node_that_is_behind_tries_a_share_of_what_it_takes() -> None:
    """Of a thousand URLs, those of failing hosts among them, a tenth."""
    share = behind()
    tried = 0
    for _ in range(1_000):
        share.note_taken(30_000)
        tried += share.rest_ms(LONG_MS) == 0
    assert tried == pytest.approx(1_000 * SHARE, abs=1)


@pytest.mark.parametrize(("late_ms", "rest_ms"), [(5_000, 10_000), (30_000, 60_000), (3_600_000, REST_MS_MAX)])
def test_rest_is_as_long_again_as_hosts_wait(late_ms: int, rest_ms: int) -> None:
    """So that what is put off does not come back all the time; and bounded."""
    assert behind(late_ms).rest_ms(LONG_MS) == pytest.approx(rest_ms, rel=0.01)


def test_some_are_tried_when_nothing_else_is_left() -> None:
    """A node that takes nothing else cannot know that it is not behind any more: time alone brings tries."""
    share = behind()
    tried = sum(share.rest_ms(LONG_MS + 100 * tenth) == 0 for tenth in range(1_000))
    assert tried == pytest.approx(100 * TRIES_A_SECOND, abs=2)


def test_tries_are_not_saved_up() -> None:
    """After an hour without failing hosts there are no more of them at once than a few dozen."""
    share = behind()
    assert sum(share.rest_ms(LONG_MS + 3_600_000) == 0 for _ in range(1_000)) == CREDIT_MAX


def test_node_that_has_caught_up_tries_all_again() -> None:
    """Some dozens of URLs that were taken in time show it."""
    share = behind(5_000)
    for _ in range(100):
        share.note_taken(0)
    assert share.rest_ms(LONG_MS) == 0
