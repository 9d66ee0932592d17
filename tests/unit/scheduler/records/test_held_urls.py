"""What a node holds: the barrier before an acknowledgement, and what a rewound Redis must be told."""

from __future__ import annotations

from types import SimpleNamespace

from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.held_urls import CONFIRMED_MAX, HeldUrls
from bigcrawl.scheduler.records.member import Member


def held_url(seq: int, partition: int = 0, host: str = "a.example") -> HeldUrl:
    fields = Member(seq, seq, 0, 0, 0, b"")
    return HeldUrl(partition, host, 0, b"%d:" % seq, fields, f"http://{host}/", f"http://{host}")


def holding(*urls: HeldUrl) -> HeldUrls:
    table = HeldUrls()
    for url in urls:
        table.add(url)
    return table


def test_ended_url_waits_for_the_links_offered_before_its_end() -> None:
    """Acknowledgeable is what ended before the flushed mark, in order; it stays until it is forgotten."""
    first, second = held_url(1), held_url(2)
    table = holding(first, second)
    table.end(first, EndedUrl(1, 0), offered=5)
    table.end(second, EndedUrl(2, 0), offered=9)
    assert table.acknowledgeable(4) == []
    assert [held.seq for held in table.acknowledgeable(5)] == [1]
    assert [held.seq for held in table.acknowledgeable(9)] == [1, 2]
    assert len(table) == table.unacknowledged == 2
    table.forget([first], 0, 0)
    assert [held.seq for held in table] == [2]


def test_ended_url_waits_for_the_pages_stored_before_its_end() -> None:
    """Likewise what stores pages: those that came before it ended are safe, its own among them."""
    first, second = held_url(1), held_url(2)
    table = holding(first, second)
    storage = SimpleNamespace(pages=3, safe_pages=2)
    table.storage = storage
    table.end(first, EndedUrl(1, 0), offered=0)
    storage.pages = 5
    table.end(second, EndedUrl(2, 0), offered=0)
    assert table.acknowledgeable(0) == []
    assert not table.has_safe(1), "a round trip would tell nothing"
    storage.safe_pages = 4
    assert [held.seq for held in table.acknowledgeable(0)] == [1]
    assert (table.has_safe(1), table.has_safe(2)) == (True, False)
    storage.safe_pages = 5
    assert [held.seq for held in table.acknowledgeable(0)] == [1, 2]
    assert table.has_safe(2)


def test_pages_are_hurried_when_so_many_urls_wait_for_them() -> None:
    """Not for fewer, nor if theirs are safe."""
    hurried: list[int] = []
    first, second = held_url(1), held_url(2)
    table = holding(first, second)
    storage = SimpleNamespace(pages=2, safe_pages=0, hurry=lambda: hurried.append(len(table)))
    table.storage = storage
    for held in (first, second):
        table.hurry_pages(2)
        table.end(held, EndedUrl(held.seq, 0), offered=0)
    assert hurried == []
    table.hurry_pages(2)
    assert hurried == [2]
    storage.safe_pages = 2
    table.hurry_pages(2)
    assert hurried == [2]


def test_url_ends_once() -> None:
    """The second word on an ended URL is ignored: the first is on its way to Redis."""
    url = held_url(1)
    table = holding(url)
    table.end(url, EndedUrl(1, 0, b"", "status:200"), 0)
    table.end(url, EndedUrl(1, 0, b"=", ""), 0)
    [held] = table.acknowledgeable(0)
    assert held.end == EndedUrl(1, 0, b"", "status:200")


def test_url_of_a_lost_partition_does_not_end() -> None:
    """What was held for a partition that is another node's is forgotten, its end too."""
    lost, kept = held_url(1, partition=0), held_url(1, partition=1)
    table = holding(lost, kept)
    table.end(lost, EndedUrl(1, 0), 0)
    assert table.drop_partition(0) == [lost]
    table.end(lost, EndedUrl(1, 0), 0)
    assert table.acknowledgeable(0) == []
    assert list(table) == [kept]


def test_url_taken_again_is_not_ended_by_its_first_fetch() -> None:
    """A partition lost and won again hands a URL out anew; the old fetch's end does not end the new one."""
    old, new = held_url(1), held_url(1)
    table = holding(old)
    table.drop_partition(0)
    table.add(new)
    table.end(old, EndedUrl(1, 0), 0)
    assert table.acknowledgeable(0) == []
    assert new.stage is Stage.WAITING


def test_urls_are_remembered_until_redis_has_run_for_some_seconds() -> None:
    """However much later that is: one that dies is away for as long as it is away."""
    done, returned, failed = held_url(1), held_url(2), held_url(3)
    table = holding(done, returned, failed)
    table.end(done, EndedUrl(1, 0), 0)
    table.end(returned, EndedUrl(2, 0, b"="), 0)
    table.end(failed, EndedUrl(3, 0, b"3:again"), 0)
    table.forget([done, returned, failed], 0, running_ms=1_000)
    table.forget([], 120_000, running_ms=1_000)
    table.forget_safe(1_000 + FORGETTABLE_MS)
    assert table.recent_ends_of(0) == [done, returned, failed]
    assert table.recent_ends_of(1) == []
    table.forget_safe(1_001 + FORGETTABLE_MS)
    assert table.recent_ends_of(0) == []


def test_ends_are_forgotten_in_any_order_and_the_rest_keeps_its_own() -> None:
    """Redis heard of some partitions' ends and not of others': what is left stays oldest first."""
    urls = [held_url(seq, partition=seq % 3) for seq in range(9)]
    table = holding(*urls)
    for url in urls:
        table.end(url, EndedUrl(url.seq, 0), offered=url.seq)
    table.forget([urls[7], urls[1], urls[4]], 0, 0)
    assert [held.seq for held in table.acknowledgeable(99)] == [0, 2, 3, 5, 6, 8]
    assert [held.seq for held in table.acknowledgeable(5)] == [0, 2, 3, 5]
    assert {held.seq for held in table} == {0, 2, 3, 5, 6, 8}
    assert {held.seq for held in table.recent_ends_of(1)} == {1, 4, 7}
    table.forget([urls[8], urls[0]], 0, 0)
    table.forget([urls[6], urls[5], urls[2], urls[3]], 0, 0)
    assert (len(table), table.unacknowledged) == (0, 0)


def test_forgotten_end_of_a_lost_partition_takes_no_other_with_it() -> None:
    """Its word came back when the partition was gone already."""
    lost, kept, other = held_url(1, partition=0), held_url(1, partition=1), held_url(2, partition=1)
    table = holding(lost, kept, other)
    for url in (lost, kept, other):
        table.end(url, EndedUrl(url.seq, 0), 0)
    table.drop_partition(0)
    table.forget([lost], 0, 0)
    assert table.acknowledgeable(0) == [kept, other]
    assert table.recent_ends_of(0) == []


def test_what_was_not_forgotten_is_told_again() -> None:
    """A word that Redis did not hear stays the next one, and comes before what ended since."""
    first, second = held_url(1), held_url(2)
    table = holding(first, second)
    table.end(first, EndedUrl(1, 0), 0)
    told = table.acknowledgeable(0)
    table.end(second, EndedUrl(2, 0), 0)
    table.forget([], 0, 0)
    assert table.acknowledgeable(0)[: len(told)] == told


def test_ends_that_were_heard_do_not_pile_up_behind_one_that_was_not() -> None:
    """A partition whose ends Redis refuses keeps its own, and nobody else's."""
    stuck, *others = [held_url(seq) for seq in range(2 * CONFIRMED_MAX)]
    table = holding(stuck, *others)
    for url in (stuck, *others):
        table.end(url, EndedUrl(url.seq, 0), 0)
    for url in others:
        table.forget([url], 0, 0)
        assert len(table._ended) <= 2 * CONFIRMED_MAX - url.seq + CONFIRMED_MAX
    assert table.unacknowledged == 1
    assert len(table._ended) <= CONFIRMED_MAX
    assert table.acknowledgeable(0) == [stuck]
