"""Revisits in a partition's fold, over steps, owners and crashes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgpack
import numpy as np
import pytest

from bigcrawl.config import read_config
from bigcrawl.drum.files import DiskFiles
from bigcrawl.features.revisits.fold import Revisits
from bigcrawl.revisiting.visit import Visit
from bigcrawl.scheduler.partition.fold.imported_rows import pack_rows
from bigcrawl.scheduler.partition.fold.seen import RELEASED_A_STEP
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.reader import WaitingUrl, find_waiting, read_partition
from bigcrawl.scheduler.queues.timed import NEVER_S
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.outcomes import pack_keys
from bigcrawl.scheduler.records.queued_url import (
    LISTED_SHIFT,
    NO_MORE_S,
    QueuedUrl,
    TimedUrl,
    encode_batch,
    encode_timed,
)
from bigcrawl.views.contents import PartitionContents
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError

if TYPE_CHECKING:
    from pathlib import Path

NOW_S = 1_800_000_000


def make_revisit(key: int, number: int, wait_s: int = 100) -> TimedUrl:
    return TimedUrl(NOW_S + wait_s, number, QueuedUrl(key, f"h{key}.example", 0, 0, b"visit %d" % number))


def entry(entry_id: str, *revisits: TimedUrl) -> InboxEntry:
    return InboxEntry(entry_id, timed=encode_timed(revisits))


@pytest.fixture
def revisits() -> Revisits:
    return Revisits.of_config(read_config({}))


@pytest.fixture
def limits(revisits: Revisits) -> PartitionLimits:
    return PartitionLimits(features=(revisits,))


@pytest.fixture
def partition(tmp_path: Path, limits: PartitionLimits) -> Partition:
    return Partition.open(tmp_path / "p0000", 1, limits)


def admitted(partition: Partition, now_s: int, *entries: InboxEntry) -> list[bytes]:
    """The bodies of the URLs that a step admits."""
    batch = partition.step(entries, 100, {}, now_s=now_s).batch
    partition._check()
    return [url.body for url in batch.urls] if batch else []


def test_a_revisit_waits_for_its_time(partition: Partition) -> None:
    """It is admitted once, when it is due, and is no waiting URL before."""
    assert admitted(partition, NOW_S, entry("1-0", make_revisit(1, 1))) == []
    assert (len(partition.state.turns.timed), partition.state.waiting) == (1, 0)
    assert abs(partition.state.turns.timed.next_s - NOW_S - 100) <= 7
    assert admitted(partition, NOW_S + 50) == []
    assert admitted(partition, NOW_S + 110) == [b"visit 1"]
    assert admitted(partition, NOW_S + 200) == []
    assert (len(partition.state.turns.timed), partition.state.turns.timed.next_s) == (0, NEVER_S)


def test_of_one_visit_one_revisit_counts(partition: Partition) -> None:
    """A repeated entry, and a second fetch of the same visit, add nothing; a later visit does."""
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 1), make_revisit(1, 1)))
    admitted(partition, NOW_S, entry("2-0", make_revisit(1, 1)))
    assert len(partition.state.turns.timed) == 1
    assert admitted(partition, NOW_S + 110) == [b"visit 1"]
    admitted(partition, NOW_S, entry("3-0", make_revisit(1, 1), make_revisit(1, 2), make_revisit(1, 1)))
    assert len(partition.state.turns.timed) == 1
    assert admitted(partition, NOW_S + 300) == [b"visit 2"]


def test_a_page_that_had_all_visits_is_kept_and_does_not_wait(tmp_path: Path, partition: Partition) -> None:
    """Once, also over owners; it is not admitted, exported or found as a URL that waits."""
    last = make_revisit(1, 3)._replace(due_s=NO_MORE_S)
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 2), make_revisit(2, 1)))
    admitted(partition, NOW_S + 110, entry("2-0", last, last))
    heir = Partition.open(tmp_path / "p0000", 2, PartitionLimits())
    assert admitted(heir, NOW_S + 200, entry("3-0", make_revisit(2, 2))) == []
    assert (len(heir.state.turns.timed), heir.state.waiting, heir.state.turns.timed.next_s) == (0, 0, NEVER_S)
    assert find_waiting(tmp_path / "p0000", 1) is None
    (tmp_path / "links").mkdir()
    contents = PartitionContents.of(tmp_path / "p0000", tmp_path / "links", DiskFiles())
    assert contents is not None
    assert [*contents.kept_urls()] == [last.url]
    assert [*contents.waiting_urls()] == []


def test_a_forgotten_url_begins_anew(partition: Partition) -> None:
    """After `forget` its visits are counted from one, and an old chain of visits ends."""
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 5)))
    admitted(partition, NOW_S, InboxEntry("2-0", forgotten=pack_keys([1])))
    admitted(partition, NOW_S, entry("3-0", make_revisit(1, 1)))
    assert len(partition.state.turns.timed) == 2
    admitted(partition, NOW_S, entry("4-0", make_revisit(1, 6)), entry("4-1", make_revisit(1, 2)))
    assert len(partition.state.turns.timed) == 3


def listed_revisit(key: int) -> TimedUrl:
    """A page that a sitemap has led to, visited now, due in 8,000 s or from 1,000 s on if its site says so."""
    visit = Visit(1, NOW_S, NOW_S, NOW_S, NOW_S + 8_000, False, b"digest", b"", b"", (), NOW_S + 1_000)
    body = with_known(msgpack.packb([f"http://h{key}.example/", 0, None]), visit.pack())
    return TimedUrl(NOW_S + 8_000, 1, QueuedUrl(key, f"h{key}.example", 0, 1 << LISTED_SHIFT, body))


def test_a_page_whose_site_says_that_it_has_changed_is_visited_sooner(partition: Partition, revisits: Revisits) -> None:
    """At its next look; another one waits on, and is visited once, about when it is due, over all owners."""
    revisits.listed.remember(1, NOW_S - 1)
    told, untold = listed_revisit(1), listed_revisit(2)
    assert admitted(partition, NOW_S, entry("1-0", told, untold)) == []
    assert admitted(partition, NOW_S + 1_300) == []
    assert len(partition.state.turns.timed) == 2
    revisits.listed.remember(1, NOW_S + 1_500)
    assert admitted(partition, NOW_S + 1_600) == [], "its next look is later"
    assert admitted(partition, NOW_S + 2_300) == [told.url.body]
    assert len(partition.state.turns.timed) == 1
    found = [admitted(partition, NOW_S + wait_s) for wait_s in range(2_400, 9_000, 100)]
    assert [bodies for bodies in found if bodies] == [[untold.url.body]]
    assert 7_000 <= 2_400 + 100 * found.index([untold.url.body]) <= 8_600


def test_a_step_looks_at_no_more_pages_than_it_releases(partition: Partition) -> None:
    """However many come up: the others come up in later steps, and none is lost."""
    pages = [listed_revisit(key) for key in range(3 * RELEASED_A_STEP)]
    for at in range(0, len(pages), 500):
        admitted(partition, NOW_S, entry(f"{at + 1}-0", *pages[at : at + 500]))
    before_s = partition.state.turns.timed.next_s
    partition.step([], 0, {}, now_s=NOW_S + 1_300)
    assert partition.state.turns.timed.next_s == before_s, "there are more to look at"
    for _ in range(5):
        partition.step([], 0, {}, now_s=NOW_S + 1_300)
    partition._check()
    assert partition.state.turns.timed.next_s > NOW_S + 1_300
    assert (len(partition.state.turns.timed), partition.state.waiting) == (len(pages), 0)


def test_a_page_that_waits_is_found_in_the_files(tmp_path: Path, partition: Partition) -> None:
    """With what is known of it, whether it waits for its time or, once that has come, with other URLs."""
    directory = tmp_path / "p0000"
    assert find_waiting(directory, 1) is None
    pages = [listed_revisit(key) for key in (1, 2)]
    admitted(partition, NOW_S, entry("1-0", *pages))
    assert find_waiting(directory, 2) == WaitingUrl(pages[1].url, for_time=True)
    partition.step([], 0, {}, now_s=NOW_S + 8_100)
    found = find_waiting(directory, 2)
    assert found is not None
    assert (found.url.key, found.for_time) == (2, False)
    assert find_waiting(directory, 3) is None
    disk = read_partition(directory, 2, 0)
    assert disk is not None
    assert disk.said["revisits"] == 1


def test_what_is_overdue_is_what_a_step_leaves(partition: Partition) -> None:
    """A step releases a portion only; the others are counted until they are released, too."""
    for at in range(3):
        pages = [make_revisit(key, 1) for key in range(at * RELEASED_A_STEP, (at + 1) * RELEASED_A_STEP)]
        admitted(partition, NOW_S, entry(f"{at + 1}-0", *pages))
    left = []
    for _ in range(4):
        partition.step([], 0, {}, now_s=NOW_S + 200)
        left.append(partition.state.turns.timed.overdue)
    assert left[-1] == 0
    assert 0 < left[0] < 2 * RELEASED_A_STEP + 1
    assert left == sorted(left, reverse=True)


def test_revisits_that_cannot_be_read_are_set_aside(partition: Partition) -> None:
    """They are counted and kept, and the others are folded."""
    step = partition.step([InboxEntry("1-0", timed=b"torn"), entry("2-0", make_revisit(2, 1))], 100, {}, now_s=NOW_S)
    assert (step.rejected, len(partition.state.turns.timed)) == (1, 1)


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_DURING, Fault.CRASH_AFTER])
def test_a_crash_loses_and_repeats_nothing(tmp_path: Path, limits: PartitionLimits, fault: Fault) -> None:
    """Whichever write of the steps fails, the old owner and the next one admit each revisit exactly once."""
    entries = [entry(f"{number}-0", make_revisit(number, 1)) for number in range(1, 4)]
    crashes = 0
    for at in range(1, 40):
        path = tmp_path / f"p{at:04d}"
        with suppress(SimulatedCrashError):
            partition = Partition.open(path, 1, limits, FaultyFiles(at, fault))
            for place, each in enumerate(entries):
                admitted(partition, NOW_S + 60 * place, each)
                partition.committed.make_durable()
            crashes -= 1
        crashes += 1
        heir = Partition.open(path, 2, limits)
        kept = [url.key for batch in heir.committed.batches(0) for url in batch.urls]
        for each in (*entries, InboxEntry("9-0")):
            step = heir.step([each], 100, {}, now_s=NOW_S + 1_000)
            kept += [url.key for url in step.batch.urls] if step.batch else []
        assert sorted(kept) == [1, 2, 3], (fault, at)
    assert crashes > 15


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_DURING, Fault.CRASH_AFTER])
def test_a_crash_during_looks_loses_and_repeats_nothing(
    tmp_path: Path, limits: PartitionLimits, revisits: Revisits, fault: Fault
) -> None:
    """A page that was put back is looked at again by the next owner, and visited once."""
    pages = [listed_revisit(key) for key in (1, 2, 3)]
    crashes = 0
    for at in range(1, 30):
        path = tmp_path / f"p{at:04d}"
        revisits.listed.clear()
        with suppress(SimulatedCrashError):
            partition = Partition.open(path, 1, limits, FaultyFiles(at, fault))
            admitted(partition, NOW_S, entry("1-0", *pages))
            for now_s in (NOW_S + 1_200, NOW_S + 2_400):
                admitted(partition, now_s)
                partition.committed.make_durable()
            crashes -= 1
        crashes += 1
        heir = Partition.open(path, 2, limits)
        revisits.listed.remember(2, NOW_S + 2_500)
        kept = [url.key for batch in heir.committed.batches(0) for url in batch.urls]
        for now_s in (NOW_S + 2_600, NOW_S + 4_800, NOW_S + 9_000):
            batch = heir.step([entry("1-0", *pages)], 100, {}, now_s=now_s).batch
            kept += [url.key for url in batch.urls] if batch else []
        assert sorted(kept) == [1, 2, 3], (fault, at)
        assert kept[0] == 2, "its site has said that it has changed"
    assert crashes > 10


def test_a_page_that_was_admitted_and_visited_beyond_the_files_has_its_next_visit(partition: Partition) -> None:
    """Files that are older than Redis meet a page and its revisit in one step: the page is skipped, not the revisit."""
    url = QueuedUrl(1, "h1.example", 0, 0, b"first")
    partition.fold_admitted({1: [1]})
    offered, ended = InboxEntry("1-0", encode_batch([url])), entry("2-0", make_revisit(1, 1))
    assert admitted(partition, NOW_S + 200, offered, ended) == [b"visit 1"]
    assert admitted(partition, NOW_S + 300) == []


def test_of_another_crawl_s_visits_the_larger_number_counts(partition: Partition) -> None:
    """And the same rows change nothing the second time."""
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 5), make_revisit(2, 1)))
    keys, numbers = (np.array(pages, dtype=kind).tobytes() for pages, kind in (([1, 2, 3], "<u8"), ([4, 2, 7], "<u4")))
    for number in range(2, 4):
        admitted(partition, NOW_S, InboxEntry(f"{number}-0", rows=pack_rows("visits", keys, numbers)))
        _, visits = partition.state.tables["visits"].values(np.array([1, 2, 3], dtype=np.uint64))
        assert visits["number"].tolist() == [5, 2, 7]


def test_without_the_feature_pages_that_wait_are_visited_once_more(tmp_path: Path, partition: Partition) -> None:
    """As the files say, and by an owner that takes no further ones."""
    admitted(partition, NOW_S, entry("1-0", make_revisit(1, 1)))
    heir = Partition.open(tmp_path / "p0000", 2, PartitionLimits())
    assert admitted(heir, NOW_S + 50, entry("2-0", make_revisit(2, 1))) == []
    assert admitted(heir, NOW_S + 110) == [b"visit 1"]
    assert len(heir.state.turns.timed) == 0


def test_visits_of_a_cycle_are_due_at_its_beginning(tmp_path: Path) -> None:
    """To the second, however long they wait, and in one queue."""
    config = read_config({"BIGCRAWL_REVISIT": "cycles", "BIGCRAWL_CYCLES": "02:00"})
    partition = Partition.open(tmp_path / "p0000", 1, PartitionLimits(features=(Revisits.of_config(config),)))
    for key, passed_s in enumerate((0, 7, 40_000, 80_000)):
        revisit = make_revisit(key, 1, wait_s=86_401)
        assert admitted(partition, NOW_S + passed_s, entry(f"{passed_s + 1}-0", revisit)) == []
    assert admitted(partition, NOW_S + 86_400) == []
    assert admitted(partition, NOW_S + 86_402) == [b"visit 1"] * 4
