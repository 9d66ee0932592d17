"""Damage to what a DRUM has on disk is found, whichever byte it is, and named with file and place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.drum.bucket import Kind
from bigcrawl.drum.drum import Drum
from bigcrawl.drum.log_records import encode_record, read_records
from bigcrawl.drum.spills.aux_file import Aux, encode_block
from bigcrawl.exceptions import ContractError, CorruptionError
from tests.support.worlds.drum_world import spread

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.spills.answers import Answer

KIND = Kind("run", np.dtype("<u4"), fresh_max=20)


class StopError(Exception):
    """The receiver takes one answer and no more, so that answers stay on disk."""


def refuse(answer: Answer) -> None:
    raise StopError


def ignore(answer: Answer) -> None:
    pass


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A DRUM with runs, answers that wait to be told, and a flushed spill without answers."""
    drum = Drum(tmp_path / "drum", refuse, kind=KIND, buckets=4)
    keys = np.array([spread(number) for number in range(300)], dtype=np.uint64)
    values = np.arange(300, dtype="<u4")
    drum.check_update(keys, values, [b"http://a.example/%d" % number for number in range(300)])
    with pytest.raises(StopError):
        drum.merge()
    drum.offer(keys[:50], np.tile(np.array([0, 1], dtype=np.uint8), 25), values[:50])
    drum.flush()
    return tmp_path / "drum"


def files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_a_sound_drum_has_no_problems(directory: Path) -> None:
    """Every kind of file is there, and none is damaged."""
    drum = Drum(directory, ignore, kind=KIND, buckets=4)
    assert drum.verify() == []
    kinds = {path.name.partition("-")[0] for path in files_of(directory)}
    assert kinds == {"MANIFEST", "answers", "aux", "keys", "run"}
    drum.merge()


@pytest.mark.parametrize(
    "kind",
    [
        *("MANIFEST", "keys", "run"),
        *(pytest.param(kind, marks=pytest.mark.long("another kind of file")) for kind in ("answers", "aux")),
    ],
)
def test_any_flipped_byte_is_found(directory: Path, kind: str) -> None:
    """By `verify`, or by opening where it is the manifest's; the error names the file, and a byte within it."""
    path = next(path for path in files_of(directory) if path.name.partition("-")[0] == kind)
    data = path.read_bytes()
    places = range(len(data)) if len(data) < 1500 else range(0, len(data), len(data) // 700)
    drum = Drum(directory, ignore, kind=KIND, buckets=4)
    for place in places:
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        problems = drum.verify()
        assert [problem.path for problem in problems] == [str(path)], place
        assert 0 <= problems[0].offset <= len(data)
    path.write_bytes(data)
    assert drum.verify() == []


@pytest.mark.parametrize("kind", ["answers", "aux", "keys", "run"])
@pytest.mark.parametrize("loss", ["cut", "gone"])
def test_a_file_that_is_short_or_gone_is_found(directory: Path, kind: str, loss: str) -> None:
    """Bytes missing at the end, or the whole file."""
    path = next(path for path in files_of(directory) if path.name.partition("-")[0] == kind)
    drum = Drum(directory, ignore, kind=KIND, buckets=4)
    if loss == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    assert [problem.path for problem in drum.verify()] == [str(path)]


@pytest.mark.parametrize("kind", ["answers", "aux", "keys"])
def test_damage_stops_what_needs_the_bytes(directory: Path, kind: str) -> None:
    """Neither telling nor merging passes over it, and what was told before stays acknowledged."""
    for path in files_of(directory):
        if path.name.partition("-")[0] == kind:
            data = path.read_bytes()
            path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    with pytest.raises(CorruptionError, match=kind):
        Drum(directory, ignore, kind=KIND, buckets=4).merge()


def test_a_torn_manifest_is_what_it_was_before(directory: Path) -> None:
    """A last record cut anywhere, or of zeros, is passed over; the next append takes its place."""
    path = directory / "MANIFEST"
    data = path.read_bytes()
    ends = [end for end, _ in read_records(path, data, 12)]
    assert len(ends) > 1
    for size in range(ends[-2], ends[-1]):
        for tail in (b"", bytes(ends[-1] - size) if size == ends[-2] else b""):
            path.write_bytes(data[:size] + tail)
            drum = Drum(directory, refuse, kind=KIND, buckets=4)
            assert drum.waiting == 0, "the spill was not flushed"
            assert drum._spills.state.end == 300
            # What the manifest no longer names was cleared away.
            assert not (directory / "keys-2").exists()
    drum = Drum(directory, ignore, kind=KIND, buckets=4)
    drum.update(np.arange(5, dtype=np.uint64))
    drum.flush()
    assert Drum(directory, ignore, kind=KIND, buckets=4).waiting == 5


@pytest.mark.parametrize("size", [0, 5, 12, 40])
def test_a_manifest_without_a_whole_record_is_damage(directory: Path, size: int) -> None:
    """The first record came by a rename: no crash cuts it."""
    path = directory / "MANIFEST"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CorruptionError, match="MANIFEST"):
        Drum(directory, ignore, kind=KIND, buckets=4)


def test_other_formats_are_refused_by_name(directory: Path) -> None:
    """A magic or version that this code does not know, with the place where it stands."""
    for name, offset in (("MANIFEST", 0), ("MANIFEST", 8)):
        path = directory / name
        data = path.read_bytes()
        path.write_bytes(data[:offset] + b"\x63" + data[offset + 1 :])
        with pytest.raises(CorruptionError) as caught:
            Drum(directory, ignore, kind=KIND, buckets=4)
        assert (caught.value.path, caught.value.offset) == (str(path), offset)
        path.write_bytes(data)


def test_records_end_where_they_say() -> None:
    """Bodies come back, each with its end; a damaged one in the middle is not passed over."""
    log = b"head" + encode_record(b"one") + encode_record(b"") + encode_record(b"three" * 100)
    assert [body for _, body in read_records("log", log, 4)] == [b"one", b"", b"three" * 100]
    with pytest.raises(CorruptionError, match="byte 4"):
        list(read_records("log", log[:7] + b"\xff" + log[8:], 4))


def test_aux_beyond_a_block_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a block's header cannot say is the caller's error, told before anything is written."""
    monkeypatch.setattr("bigcrawl.drum.spills.aux_file.COLUMN_BYTES_MAX", 100)
    with pytest.raises(ContractError, match="at most 100"):
        encode_block(np.zeros(1, dtype=np.uint8), [Aux.of([b"x" * 200])])
