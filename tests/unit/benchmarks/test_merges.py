"""The merges benchmark: runs that are about to be merged, and pages told apart by what happened meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.merges.dips import Rates, curve, merges, rates, union, within
from benchmarks.merges.prefill import prefill, run_sizes
from benchmarks.merges.step_log import DURABLE, STEP, Span, read_spans
from bigcrawl.drum.memtable import MEMTABLE_KEYS_MAX
from bigcrawl.drum.record_merge import FAN_IN
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from tests.support.worlds.partition_world import PartitionWorld, make_url

if TYPE_CHECKING:
    from pathlib import Path

KEYS = 100_000


@pytest.mark.parametrize("flushes", [1, 2, 3, FAN_IN])
def test_a_prefilled_partition_merges_all_at_the_last_flush(tmp_path: Path, flushes: int) -> None:
    """It opens with its keys and nothing waiting; flushes before that leave the large runs alone."""
    sizes = run_sizes(KEYS, flushes)
    prefill(tmp_path, sizes, seed=1)
    partition, world = Partition.open(tmp_path, 2, PartitionLimits()), PartitionWorld()
    assert (partition.state.waiting, partition.manifest.folded_urls) == (0, 0)
    assert 0.9 * KEYS <= len(partition.state.tables.seen) <= sum(sizes) <= 3 * KEYS
    counts = []
    for flush in range(flushes):
        start = flush * (MEMTABLE_KEYS_MAX + 1)
        world.offer(make_url(start + number) for number in range(MEMTABLE_KEYS_MAX + 1))
        assert partition.step(world.unread(partition), 0, {}).new == MEMTABLE_KEYS_MAX + 1
        counts.append(len(partition.committed.manifest.tables["seen"].runs))
    assert counts[-1] == 1
    assert all(count >= FAN_IN for count in counts[:-1])
    partition._check()


def test_other_seeds_are_other_keys(tmp_path: Path) -> None:
    """Partitions do not share keys, and the same seed is the same set."""
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        prefill(tmp_path / name, [1000, 500], seed)
    first, second, third = (
        np.concatenate([records.keys for records in opened.state.tables.seen.records()])
        for opened in (Partition.open(tmp_path / name, 2, PartitionLimits()) for name in "abc")
    )
    assert len(first) == 1500
    assert (first == third).all()
    assert not np.intersect1d(first, second).size


def test_pages_inside_and_outside_are_compared_by_their_rates() -> None:
    """100 pages/s for ten seconds, but 50/s in two of them: half the rate, and 50 in the worst second."""
    pages = sorted({*range(0, 3000, 10), *range(3000, 5000, 20), *range(5000, 10_000, 10)})
    found = rates(pages, [(4000, 5000), (3000, 4200)], (0, 10_000))
    assert found == Rates(2000, 8000, 50.0, 100.0, 50)
    assert found.ratio == 0.5


def test_what_lies_outside_the_bounds_does_not_count() -> None:
    """Neither the pages nor the parts of what happened; of nothing there is no rate."""
    pages = list(range(0, 10_000, 10))
    assert rates(pages, [(0, 2000), (9500, 20_000)], (1000, 10_000)).during_ms == 1500
    nothing = rates(pages, [(0, 500)], (1000, 2000))
    assert (nothing.during, nothing.ratio, nothing.worst_s) == (None, None, None)
    assert nothing.between == 100.0
    assert rates(pages, [(0, 5000)], (1000, 2000)).ratio is None


def test_intervals_are_joined_and_cut() -> None:
    assert union([(5, 9), (1, 3), (2, 4), (7, 7), (9, 10)]) == [(1, 4), (5, 10)]
    assert within([(1, 4), (5, 10), (20, 30)], (3, 8)) == [(3, 4), (5, 8)]


def test_curve_counts_whole_bins() -> None:
    assert curve([0, 50, 99, 100, 250, 310], (0, 350)) == [3, 1, 1]


def test_spans_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Line by line, without the one that is being written; large merges are told by what they wrote."""
    spans = [Span(STEP, 5, 9, 3, 4097), Span(DURABLE, 9, 11, 3, 0), Span(STEP, 20, 29, 1, 100_000)]
    file = tmp_path / "steps.txt"
    file.write_text("".join(span.line for span in spans) + "step\t30")
    assert read_spans(file) == spans
    assert merges(spans, 5000) == spans[2:]
