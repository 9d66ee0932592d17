"""Queues of URLs that could not be run: by the method that is missing, and bounded in number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgpack

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.reader import find_waiting
from bigcrawl.scheduler.queues.unrunnable import NAMES_MAX, PREFIX
from bigcrawl.scheduler.records.queued_url import UNCHECKED, UNRUNNABLE, QueuedUrl, encode_batch
from bigcrawl.scheduler.rules.callbacks import DAMAGED, Callbacks
from bigcrawl.views.contents import PartitionContents
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = Callbacks([], SimpleNamespace())


def naming(number: int, method: str | None) -> QueuedUrl:
    """A URL that was set aside for a method; None: for a damaged request."""
    body = b"\xc1" if method is None else msgpack.packb(["http://a.example/", 0, {"callback": method, "meta": {}}])
    return make_url(number, "a.example")._replace(flags=UNCHECKED | UNRUNNABLE, body=body)


def opened(tmp_path: Path, epoch: int, callbacks: Callbacks) -> Partition:
    partition = Partition.open(tmp_path / "p0000", epoch, PartitionLimits(host_hot_max=1 << 20))
    partition.sources.set_callbacks(callbacks)
    return partition


def waiting(partition: Partition) -> dict[str, int]:
    return {method: urls for method, urls in partition.state.turns.unrunnable.waiting.items() if urls}


def admitted(partition: Partition, room: int = 1 << 20) -> list[QueuedUrl]:
    step = partition.step([], room, {})
    partition._check()
    return step.batch.urls if step.batch else []


def test_names_are_bounded_and_odd_ones_are_as_damaged(tmp_path: Path) -> None:
    """Whatever an import brings, a partition has a small number of these queues."""
    partition = opened(tmp_path, 1, NOTHING)
    odd = ["no name", "a" * 61, "", "a\nb", "a/b"]
    names = [f"parse_{number}" for number in range(NAMES_MAX + 5)]
    urls = [naming(at, name) for at, name in enumerate([*odd, *names, None, "parse_é"])]
    partition.step([("1-0", encode_batch(urls))], 10, {})
    partition._check()
    assert len(waiting(partition)) == NAMES_MAX
    assert sum(waiting(partition).values()) == len(urls) == len(partition.state.turns.unrunnable)
    assert partition.state.waiting == partition.releasable == 0
    assert partition.manifest.folded_urls == len(urls)
    assert waiting(opened(tmp_path, 2, NOTHING)) == waiting(partition)


def test_they_are_released_in_portions_and_in_order(tmp_path: Path) -> None:
    """A step takes some thousands; URLs that are put away again meanwhile are of no concern to it."""
    partition = opened(tmp_path, 1, NOTHING)
    urls = [naming(at, "parse") for at in range(5_000)]
    partition.step([("1-0", encode_batch(urls))], 10, {})
    partition = opened(tmp_path, 2, Callbacks([], SimpleNamespace(parse=print)))
    assert partition.releasable == 5_000
    first = admitted(partition)
    assert 2_000 <= len(first) < 4_000
    partition = opened(tmp_path, 3, Callbacks(["parse="], SimpleNamespace()))
    found = [*first, *admitted(partition), *admitted(partition), *admitted(partition)]
    assert [url.key for url in found] == [url.key for url in urls]
    assert {url.flags for url in found} == {UNCHECKED}
    assert partition.releasable == len(partition.state.turns.unrunnable) == 0


def test_damaged_ones_are_released_once(tmp_path: Path) -> None:
    """Those that came back since the partition was opened wait for its next owner."""
    partition = opened(tmp_path, 1, NOTHING)
    partition.step([("1-0", encode_batch([naming(1, None), naming(2, None)]))], 10, {})
    for epoch in (2, 3):
        partition = opened(tmp_path, epoch, NOTHING)
        found = admitted(partition)
        assert len(found) == 2
        partition.step([(f"{epoch}-0", encode_batch([naming(url.key, None) for url in found]))], 10, {})
        assert (waiting(partition), partition.releasable, admitted(partition)) == ({DAMAGED: 2}, 0, [])


def test_they_are_found_and_exported(tmp_path: Path) -> None:
    """`explain` finds what a URL lacks, and an export has it behind all others."""
    partition = opened(tmp_path, 1, NOTHING)
    gone, plain = naming(7, "parse_old"), make_url(8, "a.example")
    partition.step([("1-0", encode_batch([gone, plain]))], 0, {})
    partition.committed.make_durable()
    found = find_waiting(tmp_path / "p0000", gone.key, prefix=PREFIX)
    assert found is not None
    assert (found.url, found.for_method) == (gone, "parse_old")
    assert find_waiting(tmp_path / "p0000", plain.key, prefix=PREFIX) is None
    links = tmp_path / "links"
    links.mkdir()
    contents = PartitionContents.of(tmp_path / "p0000", links, DiskFiles())
    assert contents is not None
    assert list(contents.waiting_urls()) == [plain, gone]
