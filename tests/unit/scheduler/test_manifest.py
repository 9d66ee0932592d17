from __future__ import annotations

from pathlib import Path

import pytest

from bigcrawl.drum.run import RunInfo
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.front_queues import EMPTY_LEVEL, Cursor, LevelState
from bigcrawl.scheduler.manifest import Manifest, decode_manifest, encode_manifest
from bigcrawl.scheduler.parked_queues import Extent, ParkedState
from bigcrawl.scheduler.segments import Segment

PATH = Path("e7/MANIFEST")
FULL = Manifest(
    epoch=7,
    number=99,
    inbox_id="1700000000000-3",
    runs=(RunInfo("run-4", 1000, 0, 2**64 - 1), RunInfo("run-9", 1, 5, 5)),
    levels=(EMPTY_LEVEL, LevelState((Segment(3, 900, 70),), 4, Cursor(3, 8, 2), 68), *(EMPTY_LEVEL,) * 3),
    credits=(1, -2, 3, -4, 2),
    parked=ParkedState(
        (Segment(0, 500, 30),),
        1,
        (("b\u00fccher.example", ((1, (Extent(0, 8, 1, 9), Extent(0, 99, 0, 2))),)),),
    ),
    batch_number=12,
    admitted=3456,
    retained=(11, 12),
    already=((2**64 - 1, 2), (0, 1)),
    folded_urls=5000,
    duplicates=40,
    rejected=2,
)


@pytest.mark.parametrize("manifest", [FULL, Manifest(epoch=1)])
def test_a_manifest_reads_back_equal(manifest: Manifest) -> None:
    """Every field survives, types included."""
    decoded = decode_manifest(PATH, encode_manifest(manifest))
    assert decoded == manifest
    assert [type(run) for run in decoded.runs] == [type(run) for run in manifest.runs]
    assert decoded.files_needed() == manifest.files_needed()


def test_it_names_every_file_it_needs() -> None:
    """Runs, segments of levels and of parked URLs, and retained batches, each with its least length."""
    needed = FULL.files_needed()
    assert set(needed) == {"run-4", "run-9", "queue-1-3", "park-0", "admit-11", "admit-12"}
    assert (needed["queue-1-3"], needed["park-0"], needed["run-9"]) == (900, 500, 64)


def test_every_damaged_byte_is_found() -> None:
    """Whichever byte is flipped, or however it is cut, a manifest is refused with its path."""
    data = encode_manifest(FULL)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x01
        with pytest.raises(CorruptionError, match="e7/MANIFEST"):
            decode_manifest(PATH, bytes(damaged))
        with pytest.raises(CorruptionError, match="e7/MANIFEST"):
            decode_manifest(PATH, data[:place])


def test_an_unknown_version_is_refused() -> None:
    """What a later version wrote is not guessed at."""
    data = bytearray(encode_manifest(FULL))
    data[8] = 2
    with pytest.raises(CorruptionError, match="expected format version 1, found 2"):
        decode_manifest(PATH, bytes(data))


def test_it_stays_small_however_many_urls_wait() -> None:
    """Four million waiting URLs of one host, all parked, are less than 64 KiB of manifest."""
    extents = tuple(Extent(n // 10, 100_000 * (n % 10), 0, 2048) for n in range(2000))
    segments = tuple(Segment(n, 1 << 20, 20_480) for n in range(200))
    parked = ParkedState(segments, 200, (("a.example", ((1, extents),)),))
    assert len(encode_manifest(Manifest(1, parked=parked))) < 64 << 10
