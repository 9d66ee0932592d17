"""How often hosts that fail are tried by a node that is behind, and by one that is not."""

from __future__ import annotations

import pytest

from bigcrawl.scheduler.handout.retry_share import (
    BEHIND_MS,
    CREDIT_MAX,
    REST_MS_MAX,
    SHARE,
    TRIES_A_SECOND,
    FailingShare,
)

NOW_MS = 1_000_000


class Node:
    """Takes URLs so long after their hosts were due."""

    def __init__(self, late_ms: int) -> None:
        self.share = FailingShare()
        self.late_ms = late_ms

    def take(self, urls: int = 1) -> None:
        for _ in range(urls):
            assert self.share.count_taken(self.late_ms, NOW_MS, fails=False) == 0

    def rest_ms(self, now_ms: int = NOW_MS) -> int:
        """Of the next URL, whose host fails."""
        return self.share.count_taken(self.late_ms, now_ms, fails=True)


def behind(late_ms: int = 30_000) -> Node:
    """A node that is so far behind and has used all its tries."""
    node = Node(late_ms)
    node.take(1_000)
    while not node.rest_ms():
        pass
    return node


def test_node_that_is_not_behind_tries_whatever_is_due() -> None:
    """A host's back-off is all that counts then."""
    node = Node(BEHIND_MS - 1)
    assert not any(node.rest_ms() for _ in range(1_000))


def test_node_that_is_behind_tries_a_share_of_what_it_takes() -> None:
    """A tenth, however many others of failing hosts it has to put off."""
    node = behind()
    tried = 0
    for _ in range(900):
        node.take()
        tried += sum(node.rest_ms() == 0 for _ in range(5))
    assert tried == pytest.approx(900 * SHARE / (1 - SHARE), abs=2)


@pytest.mark.parametrize(("late_ms", "rest_ms"), [(5_000, 10_000), (30_000, 60_000), (3_600_000, REST_MS_MAX)])
def test_rest_is_as_long_again_as_hosts_wait(late_ms: int, rest_ms: int) -> None:
    """So that what is put off does not come back all the time; and bounded."""
    assert behind(late_ms).rest_ms() == pytest.approx(rest_ms, rel=0.01)


def test_some_are_tried_when_nothing_else_is_left() -> None:
    """Time alone brings tries, to a node that takes nothing else."""
    node = behind()
    tried = sum(node.rest_ms(NOW_MS + 100 * tenth) == 0 for tenth in range(1_000))
    assert tried == pytest.approx(100 * TRIES_A_SECOND / (1 - SHARE), abs=3)


def test_tries_are_not_saved_up() -> None:
    """After an hour without failing hosts there are no more of them at once than a few dozen."""
    node = behind()
    tried = sum(node.rest_ms(NOW_MS + 3_600_000) == 0 for _ in range(1_000))
    assert CREDIT_MAX <= tried <= CREDIT_MAX / (1 - SHARE)


def test_node_that_has_caught_up_tries_all_again() -> None:
    """Some dozens of URLs that were taken in time show it."""
    node = behind(5_000)
    node.late_ms = 0
    node.take(100)
    assert not any(node.rest_ms() for _ in range(1_000))


def test_lateness_is_told_for_a_second() -> None:
    """A node that has taken nothing since is not late. Each URL moves the mean by a 64th."""
    share = FailingShare()
    assert share.late_ms(NOW_MS) == 0.0
    share.count_taken(64_000, NOW_MS, fails=False)
    assert share.late_ms(NOW_MS + 999) == 1_000.0
    assert share.late_ms(NOW_MS + 1_000) == 0.0
    assert repr(share).startswith("<FailingShare late_ms=1000 ")


def test_a_new_share_has_no_lateness_and_no_credit() -> None:
    """A URL that fails at once waits, if its host was late enough."""
    assert repr(FailingShare()) == "<FailingShare late_ms=0 credit=0.0>"


def test_a_try_costs_a_whole_one_and_being_behind_begins_at_its_bound() -> None:
    """A share of one URL and 950 ms make the first try, to the millisecond."""
    late_ms = [REST_MS_MAX, 64 * BEHIND_MS - 63 * REST_MS_MAX // 64]
    share = FailingShare()
    assert share.count_taken(late_ms[0], 0, fails=False) == 0
    assert share.count_taken(late_ms[1], 0, fails=True) == 2 * BEHIND_MS
    assert share.count_taken(BEHIND_MS, 949, fails=True) == 2 * BEHIND_MS
    assert share.count_taken(BEHIND_MS, 950, fails=True) == 0
    assert share.count_taken(BEHIND_MS, 950, fails=True) == 2 * BEHIND_MS


def test_one_very_late_host_makes_no_node_late() -> None:
    """It was away, or the crawl was."""
    node = Node(0)
    node.take(100)
    node.late_ms = 86_400_000
    node.take()
    node.late_ms = 0
    assert not any(node.rest_ms() for _ in range(1_000))
