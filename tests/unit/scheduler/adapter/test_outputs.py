"""Pages and items are where an acknowledgement needs them: both must accept more, and items are flushed first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bigcrawl.scheduler.adapter.scrapy_engine import Outputs


def outputs(*, is_flushed: bool, is_stuck: bool) -> tuple[Outputs, list[str]]:
    """Outputs in that state, and what they were asked to do."""
    asked: list[str] = []

    def flush() -> bool:
        asked.append("flush")
        return not is_stuck

    storage: Any = SimpleNamespace(is_flushed=lambda: is_flushed)
    feeds: Any = SimpleNamespace(is_stuck=is_stuck, flush=flush)
    return Outputs(storage, feeds), asked


def test_a_crawler_without_outputs_never_waits_for_them() -> None:
    """It stores neither pages nor items."""
    assert Outputs().take_more()
    assert Outputs().make_safe()


@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("is_stuck", [True, False])
def test_nothing_is_taken_while_one_of_them_is_full(*, is_flushed: bool, is_stuck: bool) -> None:
    """Neither pages nor items may gather in memory."""
    both, asked = outputs(is_flushed=is_flushed, is_stuck=is_stuck)
    assert both.take_more() is (is_flushed and not is_stuck)
    assert asked == [], "a question writes nothing"


@pytest.mark.parametrize(("is_flushed", "is_stuck", "is_safe"), [(True, False, True), (True, True, False)])
def test_items_are_flushed_before_their_pages_count(*, is_flushed: bool, is_stuck: bool, is_safe: bool) -> None:
    """If they cannot be, nothing is acknowledged."""
    both, asked = outputs(is_flushed=is_flushed, is_stuck=is_stuck)
    assert both.make_safe() is is_safe
    assert asked == ["flush"]


def test_items_wait_for_pages_that_the_disk_does_not_take() -> None:
    """There is nothing to acknowledge then, so there is nothing to flush."""
    both, asked = outputs(is_flushed=False, is_stuck=False)
    assert not both.make_safe()
    assert asked == []
