"""Replies of many calls, told apart."""

from __future__ import annotations

import pytest

from bigcrawl.exceptions import OwnershipLostError, TransientStoreError
from bigcrawl.redisdb.replies import sort_replies


def test_results_are_told_apart_by_what_came_of_the_call() -> None:
    """Done, lost to another owner, failed: each asker is in one of the three, and the first failure is raised."""
    first = TransientStoreError("first")
    found = sort_replies("abcde", [7, OwnershipLostError("gone"), first, TransientStoreError("second"), None])
    assert found.done == [("a", 7), ("e", None)]
    assert found.lost == ["b"]
    assert found.failed is first
    with pytest.raises(TransientStoreError, match="first"):
        found.raise_failure()


def test_a_loss_of_ownership_is_no_failure() -> None:
    """It concerns one partition, and whoever asked drops that."""
    sort_replies("a", [OwnershipLostError("gone")]).raise_failure()
    with pytest.raises(ValueError, match="zip"):
        sort_replies("ab", [1])
