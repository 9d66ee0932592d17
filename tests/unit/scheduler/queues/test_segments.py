from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.segments import BLOCK_URLS_MAX, FIRST_BLOCK, SegmentLog, in_blocks
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl


@pytest.fixture
def epoch(tmp_path: Path) -> EpochDirectory:
    return EpochDirectory(tmp_path, 1, DiskFiles())


def urls_of(count: int, start: int = 0) -> list[QueuedUrl]:
    return [make_url(start + i) for i in range(count)]


def read_all(log: SegmentLog) -> list[QueuedUrl]:
    urls: list[QueuedUrl] = []
    for segment in log.segments:
        offset = FIRST_BLOCK
        while offset < segment.length:
            block, offset = log.read(segment.number, offset)
            urls += block
    return urls


def test_urls_come_back_in_order_over_many_segments(epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks fill a segment to its bound and go on in the next; every URL comes back once, in order."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.SEGMENT_BYTES_MAX", 4000)
    log = SegmentLog(epoch, "queue-1")
    written: list[QueuedUrl] = []
    for number in range(20):
        urls = urls_of(37 * number % 150, 1000 * number)
        places = log.append(in_blocks(urls))
        assert sum(place.urls for place in places) == len(urls)
        written += urls
        log._check()
    assert read_all(log) == written
    assert len(log.segments) > 3
    assert all(segment.length <= 4000 for segment in log.segments)


def test_a_url_larger_than_a_segment_has_one_to_itself(epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of a segment never loses a URL."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.SEGMENT_BYTES_MAX", 100)
    log = SegmentLog(epoch, "queue-1")
    large = make_url(1)._replace(body=bytes(range(256)) * 300)
    log.append([[make_url(0)], [large], [make_url(2)]])
    assert read_all(log) == [make_url(0), large, make_url(2)]


def test_a_fork_leaves_its_origin_as_it_is(epoch: EpochDirectory) -> None:
    """What a dropped fork appended is overwritten by the next append and never read."""
    log = SegmentLog(epoch, "queue-1")
    log.append([urls_of(3)])
    before = log.segments
    log.fork().append([urls_of(50, 100)])
    assert log.segments == before
    log.append([urls_of(2, 10)])
    assert read_all(log) == [*urls_of(3), *urls_of(2, 10)]


def test_an_inherited_segment_is_sealed(epoch: EpochDirectory) -> None:
    """A log restored from a manifest appends to a new segment, and reads the old to its committed length."""
    log = SegmentLog(epoch, "queue-1")
    log.append([urls_of(3)])
    committed = log.segments
    log.append([urls_of(5, 50)])
    restored = SegmentLog(epoch, "queue-1", committed, log.next_number)
    restored.append([urls_of(1, 90)])
    assert [segment.number for segment in restored.segments] == [0, 1]
    assert read_all(restored) == [*urls_of(3), *urls_of(1, 90)]


def test_every_damaged_byte_of_a_block_is_found(epoch: EpochDirectory) -> None:
    """Whichever byte is flipped, reading the block names the file and the block's offset."""
    log = SegmentLog(epoch, "queue-1")
    log.append(in_blocks(urls_of(4)))
    path = epoch.path / "queue-1-0"
    sound = path.read_bytes()
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        log.forget_ahead()
        with pytest.raises(CorruptionError) as caught:
            read_all(log)
        assert caught.value.path == str(path)
        assert caught.value.offset == (FIRST_BLOCK if place >= FIRST_BLOCK else 0)


@pytest.mark.parametrize("length", [0, 4, FIRST_BLOCK, FIRST_BLOCK + 5, 40])
def test_a_segment_that_was_cut_is_damage(epoch: EpochDirectory, length: int) -> None:
    """A segment shorter than its committed length is never an empty one."""
    log = SegmentLog(epoch, "queue-1")
    log.append([urls_of(4)])
    path = epoch.path / "queue-1-0"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CorruptionError):
        read_all(log)


def test_blocks_hold_no_more_than_their_bound() -> None:
    """A sequence is cut into blocks in order, the last one short."""
    urls = urls_of(2 * BLOCK_URLS_MAX + 1)
    blocks = list(in_blocks(urls))
    assert [len(block) for block in blocks] == [BLOCK_URLS_MAX, BLOCK_URLS_MAX, 1]
    assert [url for block in blocks for url in block] == urls
    assert list(in_blocks([])) == []


def test_segments_grow_with_their_queue(epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of any length has few segments, none of which is more than a sixteenth of it, or the usual size."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.SEGMENT_BYTES_MAX", 2000)
    fixed, growing = SegmentLog(epoch, "park"), SegmentLog(epoch, "queue-1", grows=True)
    urls = [make_url(number) for number in range(64)]
    for _ in range(100):
        for log in (fixed, growing):
            log.append(in_blocks(urls * 5))
    assert len(fixed.segments) > 2 * len(growing.segments)
    total = sum(segment.length for segment in growing.segments)
    assert max(segment.length for segment in growing.segments) <= max(2000, total // 16)
    numbers = [segment.number for segment in growing.segments]
    assert numbers == list(range(len(numbers)))
    assert growing.verify() == []
    assert sum(segment.urls for segment in growing.segments) == 100 * 320
