"""Damage to what a DRUM has on disk is found, whichever byte it is, and named with file and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest

from bigcrawl.drum.bucket import Kind
from bigcrawl.drum.log_records import encode_header, encode_record, read_records
from bigcrawl.exceptions import ConfigError, ContractError, CorruptionError
from bigcrawl_drum.aux_column import Aux, encode_aux
from bigcrawl_drum.drum import Drum
from tests.support.worlds.drum_world import spread

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl_drum.merge import Answer

KIND = Kind("run", np.dtype("<u4"), fresh_max=20)


class StopError(Exception):
    """The receiver takes no answer."""


def ignore(answer: Answer) -> None:
    pass


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A DRUM with runs, and tuples that wait for a merge in two blocks."""
    keys = np.array([spread(number) for number in range(300)], dtype=np.uint64)
    values = np.arange(300, dtype="<u4")
    with Drum(tmp_path / "drum", ignore, kind=KIND, buckets=4) as drum:
        drum.update(keys[100:], values[100:])
        drum.merge()
        drum.check_update(keys, values, [b"http://a.example/%d" % number for number in range(300)])
        drum.flush()
        drum.offer(keys[:50], np.tile(np.array([0, 1], dtype=np.uint8), 25), values[:50])
    return tmp_path / "drum"


def files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_a_sound_drum_has_no_problems(directory: Path) -> None:
    """Every kind of file is there, and none is damaged."""
    drum = Drum(directory, ignore, kind=KIND, buckets=4)
    assert drum.verify() == []
    kinds = {path.name.partition("-")[0] for path in files_of(directory)}
    assert kinds == {"MANIFEST", "offers", "run"}
    drum.merge()


@pytest.mark.parametrize("kind", ["MANIFEST", "offers", "run"])
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


@pytest.mark.parametrize("kind", ["offers", "run"])
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


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])


def test_damage_to_offers_stops_an_opening(directory: Path) -> None:
    damage(directory / "offers-2")
    with pytest.raises(CorruptionError, match="offers"):
        Drum(directory, ignore, kind=KIND, buckets=4)


@pytest.mark.parametrize("kind", ["gathered-*", "answers"])
def test_damage_to_scratch_stops_a_merge_and_a_new_process_has_the_answers(tmp_path: Path, kind: str) -> None:
    """Files that are not durable have checksums too, and what they held is in the offers file."""
    refuses = kind == "answers"
    told: list[Answer] = []

    def receive(answer: Answer) -> None:
        if refuses:
            raise StopError
        told.append(answer)

    keys = np.array([spread(number) for number in range(25)], dtype=np.uint64)
    drum = Drum(tmp_path / "drum", receive, buckets=4, memory_bytes=3500)
    for number in range(5):
        drum.check_update(keys[5 * number : 5 * number + 5])
    if refuses:
        with pytest.raises(StopError):
            drum.merge()
    path = min((tmp_path / "drum").glob(kind))
    damage(path)
    refuses = False
    with pytest.raises(CorruptionError, match=path.name):
        drum.merge()
    assert told == []
    Drum(tmp_path / "drum", receive, buckets=4, memory_bytes=3500).tell()
    assert [key for answer in told for key in answer.keys.tolist()] == keys.tolist()
    assert not any(answer.found.any() for answer in told)


def test_a_torn_manifest_is_what_it_was_before(directory: Path) -> None:
    """A last record cut anywhere, or of zeros, is passed over; the next append takes its place."""
    path = directory / "MANIFEST"
    data = path.read_bytes()
    ends = [end for end, _ in read_records(path, data, 12)]
    assert len(ends) > 1
    for size in range(ends[-2], ends[-1]):
        for tail in (b"", bytes(ends[-1] - size) if size == ends[-2] else b""):
            path.write_bytes(data[:size] + tail)
            drum = Drum(directory, ignore, kind=KIND, buckets=4)
            assert drum.waiting == 300, "the second block was not flushed"
            assert drum._state.offered.end == 500
    drum = Drum(directory, ignore, kind=KIND, buckets=4)
    drum.update(np.arange(5, dtype=np.uint64))
    drum.flush()
    assert Drum(directory, ignore, kind=KIND, buckets=4).waiting == 305


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


def of_version_1(directory: Path, kind: str, told: int) -> None:
    """Make a manifest as version 1 wrote it: 20 keys, whose answers may wait in a spill."""
    Drum(directory, ignore, buckets=1).close()
    keys = [spread(number).to_bytes(8, "little") for number in range(20)]
    first: dict[str, Any] = {
        "kind": ("run", None, False, 4096),
        "buckets": [([], keys)],
        "spills": [],
        "answered": 20,
        "told": 20,
    }
    spilled = {"spills": [(1, 0, 20, 40, True)], "told": 0}
    records = {"merged": [first], "spilled": [{**first, **spilled}, {"told": told}]}[kind]
    data = b"".join(encode_record(msgpack.packb(fields)) for fields in records)
    (directory / "MANIFEST").write_bytes(encode_header(b"BCDRUMMF", 1) + data)
    for name in ("keys-1", "aux-1", "answers-1"):
        (directory / name).write_bytes(b"tuples")


@pytest.mark.parametrize("kind", ["merged", "spilled"])
def test_a_drum_of_version_1_goes_on_with_its_keys_and_ordinals(tmp_path: Path, kind: str) -> None:
    """Where all answers were told; files of spills are deleted, and the manifest is of this version from then on."""
    of_version_1(tmp_path / "drum", kind, 20)
    answers: list[Answer] = []
    with Drum(tmp_path / "drum", answers.append, buckets=1) as drum:
        assert (tmp_path / "drum" / "MANIFEST").read_bytes().startswith(encode_header(b"BCDRUMMF", 2))
        drum.check(np.array([spread(number) for number in range(18, 22)], dtype=np.uint64))
        drum.merge()
        assert len(drum) == 20
    assert [(answer.first, answer.found.tolist()) for answer in answers] == [(20, [True, True, False, False])]
    assert [path.name for path in files_of(tmp_path / "drum")] == ["MANIFEST"]


def test_a_drum_of_version_1_whose_answers_wait_is_left_as_it_is(tmp_path: Path) -> None:
    of_version_1(tmp_path / "drum", "spilled", 15)
    before = {path: path.read_bytes() for path in files_of(tmp_path / "drum")}
    with pytest.raises(ConfigError, match="5 tuples wait in format version 1"):
        Drum(tmp_path / "drum", ignore, buckets=1)
    assert {path: path.read_bytes() for path in files_of(tmp_path / "drum")} == before


def test_records_end_where_they_say() -> None:
    """Bodies come back, each with its end; a damaged one in the middle is not passed over."""
    log = b"head" + encode_record(b"one") + encode_record(b"") + encode_record(b"three" * 100)
    assert [body for _, body in read_records("log", log, 4)] == [b"one", b"", b"three" * 100]
    with pytest.raises(CorruptionError, match="byte 4"):
        list(read_records("log", log[:7] + b"\xff" + log[8:], 4))


def test_aux_beyond_a_block_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a block's header cannot say is the caller's error, told before anything is written."""
    monkeypatch.setattr("bigcrawl_drum.aux_column.COLUMN_BYTES_MAX", 100)
    with pytest.raises(ContractError, match="at most 100"):
        encode_aux([Aux.of([b"x" * 200])])
