"""Which events of a crawl are listed."""

from __future__ import annotations

import pytest

from bigcrawl.views.activity.events import without_revoked_ends


@pytest.mark.parametrize(
    ("kinds", "is_finished", "left"),
    [
        ("finished", False, ""),
        ("finished", True, "finished"),
        ("node_came finished rule finished node_left", True, "node_came rule finished node_left"),
        ("finished node_left node_came finished", False, "finished node_left node_came"),
        ("finished node_died", False, "node_died"),
    ],
)
def test_an_end_that_was_taken_back_is_left_out(kinds: str, left: str, *, is_finished: bool) -> None:
    """A crawl is announced as finished, and goes on when a start request or another crawl brings a URL."""
    rows = [(at, kind, "", "") for at, kind in enumerate(kinds.split())]
    listed = list(without_revoked_ends(rows[::-1], is_finished=is_finished))[::-1]
    assert " ".join(row[1] for row in listed) == left
