"""Pages that their sites list are looked at while they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack
import pytest

from bigcrawl.features.revisits.fold import PAGES_MAX, ListedPages
from bigcrawl.features.revisits.looks import first_check_s, next_check_s
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.revisiting.rules import TRUST
from bigcrawl.revisiting.visit import Visit
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.queued_url import LISTED_SHIFT, QueuedUrl, TimedUrl
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

NOW_S = 1_800_000_000
DUE_S = NOW_S + 80_000
SOONEST_S = NOW_S + 10_000
LISTED = 3 << LISTED_SHIFT


def waiting(flags: int = LISTED, soonest_s: int = SOONEST_S, key: int = 7) -> TimedUrl:
    """A page that was visited now."""
    visit = Visit(1, NOW_S, NOW_S, NOW_S, DUE_S, False, b"digest", b"", b"", (), soonest_s)
    body = with_known(msgpack.packb(["http://a.example/", 0, None]), visit.pack())
    return TimedUrl(DUE_S, 1, QueuedUrl(key, "a.example", 0, flags, body))


def test_a_listed_page_comes_up_before_it_is_due() -> None:
    """Whether a sitemap has led to it, or names it later; any other page waits until it is due."""
    assert first_check_s(waiting(), {}) == SOONEST_S
    assert first_check_s(waiting(flags=0), {7: NOW_S - 5}) == SOONEST_S
    assert first_check_s(waiting(flags=0), {8: NOW_S}) == DUE_S
    assert first_check_s(waiting(soonest_s=0), {}) == DUE_S, "one that has failed"


def test_a_page_that_has_changed_is_visited_at_its_next_look() -> None:
    """One that has not is looked at again, each time later, and visited when it is due."""
    url = waiting().url
    assert next_check_s(url, {7: NOW_S + 1}, SOONEST_S) is None
    for modified in ({}, {7: NOW_S}, {8: NOW_S + 1}):
        assert next_check_s(url, modified, SOONEST_S) == NOW_S + 20_000
        assert next_check_s(url, modified, NOW_S + 20_000) == NOW_S + 40_000
        assert next_check_s(url, modified, NOW_S + 40_000) == DUE_S
        assert next_check_s(url, modified, DUE_S) is None
    assert next_check_s(url, {7: NOW_S + 1}, SOONEST_S - 1) == SOONEST_S, "no site is asked sooner"
    assert next_check_s(url, {}, DUE_S - 5_000) is None, "its queue by time is as early"
    assert next_check_s(waiting(flags=0).url, {}, SOONEST_S) is None


@pytest.mark.parametrize("body", [b"", b"visit", msgpack.packb(["http://a.example/", 0, None, b"\x91\x09"])])
def test_a_page_of_which_nothing_can_be_read_is_visited(body: bytes) -> None:
    """Its visit finds out what there is."""
    url = QueuedUrl(7, "a.example", 0, LISTED, body)
    assert next_check_s(url, {}, NOW_S) is None
    assert first_check_s(TimedUrl(DUE_S, 1, url), {}) == DUE_S


def test_only_recent_changes_are_kept_and_not_too_many(tmp_path: Path) -> None:
    """What was changed longer ago than any page waits is known to all; the oldest notes are dropped."""
    config = make_config(tmp_path, "test", BIGCRAWL_REVISIT_SECONDS=1_000)
    listed = ListedPages(config.feature_config(RevisitConfig))
    listed.record_pages([(1, NOW_S - TRUST * 1_000 - 1), (2, NOW_S - TRUST * 1_000), (3, NOW_S)], NOW_S)
    assert dict(listed) == {2: NOW_S - TRUST * 1_000, 3: NOW_S}
    listed.record_pages(((key, NOW_S) for key in range(10, 9 + PAGES_MAX)), NOW_S)
    assert len(listed) == PAGES_MAX
    assert 2 not in listed
    assert 3 in listed
