"""All that a partition's files hold, read while its owner goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.commands.moving.export import _partition_lines
from bigcrawl.commands.moving.export_file import data_of
from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError
from bigcrawl.features.copies.fold import Copies
from bigcrawl.scheduler.partition.fold.imported_rows import ROWS_AT_ONCE
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.outcomes import pack_outcomes
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch
from bigcrawl.views.contents import PartitionContents
from bigcrawl.views.partition import HeldInRedis
from tests.support.keys import pld_key
from tests.support.observed_rows import pack_each, unpack_each
from tests.support.worlds.partition_world import SetBudgets, make_edges, make_runs_early, make_url, pld_of
from tests.unit.content.pages import edited, page
from tests.unit.content.test_near_copies import rows_of

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

LIMITS = PartitionLimits(host_hot_max=4, host_hot_low=2, features=(Copies(),))
HOSTS = ("a.example", "b.example", "c.example")


def contents_of(partition: Path, links: Path) -> PartitionContents:
    links.mkdir()
    found = PartitionContents.of(partition, links, DiskFiles())
    assert found is not None
    return found


def many(count: int) -> list[QueuedUrl]:
    return [make_url(number, HOSTS[number % 3], priority=(0, 0, 5, -1)[number % 4]) for number in range(count)]


def a_life(directory: Path, patches: pytest.MonkeyPatch) -> tuple[Partition, list[QueuedUrl]]:
    """A partition with parked URLs, later turns and URLs over budget; and the URLs that it has admitted."""
    make_runs_early(patches, 64)
    partition = Partition.open(directory, 1, LIMITS, budgets=SetBudgets(3), pld_of=pld_of, pld_key=pld_key)
    admitted: list[QueuedUrl] = []
    edges = make_edges([("x.example", "a.example"), ("y.example", "a.example")])
    hot: Counter[str] | dict[str, int] = {}
    for at, start in enumerate(range(0, 3_000, 500), 1):
        outcomes = pack_outcomes((url.key, "status:200", 0) for url in admitted)
        batch = encode_batch(many(3_000)[start : start + 500])
        step = partition.step([InboxEntry(f"{at}-0", batch, edges, outcomes)], 20, hot)
        admitted += step.batch.urls if step.batch else []
        partition.committed.make_durable()
    return partition, admitted


def test_every_url_is_read_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits and what was admitted is what came; URLs of one host and level come as they would leave."""
    partition, admitted = a_life(tmp_path / "p0000", monkeypatch)
    contents = contents_of(tmp_path / "p0000", tmp_path / "links")
    waiting = list(contents.waiting_urls())
    assert len(waiting) == partition.state.waiting
    assert sorted([*waiting, *admitted]) == sorted(many(3_000))
    assert contents.inbox_id == partition.manifest.inbox_id
    for host in HOSTS:
        for level in range(5):
            there = [url for url in waiting if url.host == host and level_of(url.priority) == level]
            came = [url for url in many(3_000) if url in set(there)]
            assert there == came


def test_batches_that_redis_lacks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node was killed between its commit and the admission."""
    partition, admitted = a_life(tmp_path / "p0000", monkeypatch)
    contents = contents_of(tmp_path / "p0000", tmp_path / "links")
    assert list(contents.urls_of_batches(0)) == admitted
    [last] = partition.committed.batches(partition.manifest.batch_number - 1)
    assert list(contents.urls_of_batches(partition.manifest.batch_number - 1)) == last.urls
    assert not list(contents.urls_of_batches(partition.manifest.batch_number))


def test_urls_that_redis_admitted_before_the_disk_knew_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are an old copy: each such URL is left out once."""
    partition, _ = a_life(tmp_path / "p0000", monkeypatch)
    before = list(contents_of(tmp_path / "p0000", tmp_path / "before").waiting_urls())
    known = [before[3], before[40]]
    partition.fold_admitted({partition.manifest.batch_number + 1: [url.key for url in known]})
    partition.committed.make_durable()
    after = list(contents_of(tmp_path / "p0000", tmp_path / "after").waiting_urls())
    assert after == [url for url in before if url not in known]


def test_rows_are_those_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All seen keys and ends; of a PLD only its in-degree."""
    partition, admitted = a_life(tmp_path / "p0000", monkeypatch)
    rows = list(contents_of(tmp_path / "p0000", tmp_path / "links").table_rows())
    assert all(len(one.keys) <= ROWS_AT_ONCE for one in rows)
    keys = {name: np.concatenate([r.keys for r in rows if r.table == name]) for name in {r.table for r in rows}}
    assert sorted(keys["seen"].tolist()) == sorted(url.key for url in many(3_000))
    assert set(keys["ends"].tolist()) <= {url.key for url in admitted}
    assert len(keys["ends"]) >= len(admitted) - 20
    assert len(keys["edges"]) == 2
    [plds] = [one for one in rows if one.table == "plds" and len(one.keys)]
    assert plds.values is not None
    assert dict(zip(plds.keys.tolist(), plds.values.tolist(), strict=True)) == {pld_key("a.example"): (2, 0, 0, 0, 0)}
    assert len(partition.state.tables.seen) == 3_000


def test_owner_goes_on_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It merges runs, empties queues and deletes files; the contents stay those of their moment."""
    partition, _ = a_life(tmp_path / "p0000", monkeypatch)
    contents = contents_of(tmp_path / "p0000", tmp_path / "links")
    before = set(partition.committed.own._present)
    for at in range(7, 400):
        batch = encode_batch([make_url(10_000 + at)])
        partition.step([InboxEntry(f"{at}-0", batch)], 100, {})
        partition.committed.make_durable()
    assert before - set(partition.committed.own._present), "files were deleted"
    assert len(list(contents.waiting_urls())) > 2_000
    assert sum(len(one.keys) for one in contents.table_rows() if one.table == "seen") == 3_000


def test_partition_without_a_manifest_has_no_contents(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    assert PartitionContents.of(tmp_path / "p0000", tmp_path / "links", DiskFiles()) is None


def test_damage_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_life(tmp_path / "p0000", monkeypatch)
    run = max((tmp_path / "p0000" / "e1").glob("run-*"), key=lambda path: path.stat().st_size)
    data = bytearray(run.read_bytes())
    data[len(data) // 2] ^= 0xFF
    run.write_bytes(data)
    contents = contents_of(tmp_path / "p0000", tmp_path / "links")
    with pytest.raises(CorruptionError):
        list(contents.table_rows())


def test_what_other_partitions_were_not_told_goes_to_them(tmp_path: Path) -> None:
    """No file would find that near copy again: its sketch is known."""
    partition = Partition.open(tmp_path / "p0000", 1, LIMITS)
    for at, body in ((1, page(1)), (2, edited(page(1), 1, 4))):
        sketched = rows_of((at, body), contents={1: 10, 2: 21}).tobytes()
        partition.step([InboxEntry(f"{at}-0", observed=pack_each(b"", sketched))], 0, {})
    lines = list(
        _partition_lines(contents_of(tmp_path / "p0000", tmp_path / "links"), HeldInRedis(0, []), 0, partitions=8)
    )
    [line] = [line for line in lines if "contents" in line]
    assert line["partition"] == 21 % 8
    assert unpack_each(data_of(line, "contents")).found.tolist() == [(21, 2, 1)]
