from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from isal import isal_zlib

from bigcrawl.warc import members
from bigcrawl.warc.files import lock_named
from bigcrawl.warc.records import exchange_records
from bigcrawl.warc.recovery import RecoveredFile, recover_directory, recover_file
from bigcrawl.warc.segments import WarcWriter
from bigcrawl.warc.verification import verify_file
from tests.unit.warc.elsewhere import grow_old
from tests.unit.warc.medium import Lost, Medium, Survivors
from tests.unit.warc.reading import exchange, gzip_members, numbers_of, read_checked

PROJECT = Path(__file__).parents[3]


def warc_bytes(directory: Path, count: int, body: bytes = b"page") -> bytes:
    """A sound file of `count` exchanges; nothing of it stays in the directory."""
    writer = WarcWriter(directory, "c", "n")
    for number in range(count):
        writer.write(exchange(number, body))
    path = writer.open_path
    assert path
    data = path.read_bytes()
    writer.close()
    path.with_suffix("").unlink()
    return data


def abandon(directory: Path, data: bytes, name: str = "c.warc.gz.open") -> Path:
    path = directory / name
    path.write_bytes(data)
    return path


def member_ends(data: bytes) -> list[int]:
    """The offset behind each gzip member."""
    ends = []
    rest = data
    while rest:
        unpacker = zlib.decompressobj(31)
        unpacker.decompress(rest)
        rest = unpacker.unused_data
        ends.append(len(data) - len(rest))
    return ends


def test_file_torn_at_any_byte_keeps_every_whole_record(tmp_path: Path) -> None:
    """Cut anywhere in its last two records, a file comes back with all records before the cut, sound."""
    data = warc_bytes(tmp_path, 2)
    ends = member_ends(data)
    assert len(ends) == 5
    sound: dict[bytes, int] = {}
    for size in range(ends[-3], len(data) + 1):
        abandon(tmp_path, data[:size])
        whole = sum(end <= size for end in ends)
        kept = ends[whole - 1]
        path = tmp_path / "c.warc.gz"
        assert recover_directory(tmp_path) == [RecoveredFile(path, whole, kept, size - kept)]
        assert os.listdir(tmp_path) == ["c.warc.gz"]  # noqa: PTH208
        found = path.read_bytes()
        assert found == data[:kept]
        if found not in sound:
            assert len(read_checked(path)) == whole
            sound[found] = whole
        path.unlink()
    assert sorted(sound.values()) == [3, 4, 5]


def test_record_that_ends_where_a_read_ends_costs_none_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is read in pieces; wherever these end, it is cut behind its last whole record."""
    data = warc_bytes(tmp_path, 3)
    ends = member_ends(data)
    for piece in (ends[0], ends[1], ends[2]):
        monkeypatch.setattr(members, "CHUNK", piece)
        abandon(tmp_path, data[:-1])
        path = tmp_path / "c.warc.gz"
        assert recover_directory(tmp_path) == [RecoveredFile(path, len(ends) - 1, ends[-2], len(data) - 1 - ends[-2])]
        path.unlink()


def test_file_without_a_whole_record_is_removed(tmp_path: Path) -> None:
    """An empty file, and one that never got its first record whole, leave nothing behind, once they are quiet."""
    data = warc_bytes(tmp_path, 1)
    path = abandon(tmp_path, data[:50])
    empty = abandon(tmp_path, b"", "e.warc.gz.open")
    assert recover_directory(tmp_path) == [], "their writers may be about to write"
    grow_old(path)
    grow_old(empty)
    assert recover_directory(tmp_path) == [RecoveredFile(path, 0, 0, 50), RecoveredFile(empty, 0, 0, 0)]
    assert not list(tmp_path.iterdir())


def test_file_of_a_live_writer_is_not_touched(tmp_path: Path) -> None:
    """While its lock is held a file stays as it is, also for a writer of the same process."""
    writer = WarcWriter(tmp_path, "c", "n")
    writer.write(exchange(0))
    path = writer.open_path
    assert path
    with path.open("ab") as other:
        other.write(b"the beginning of a record")
    before = path.read_bytes()
    assert recover_directory(tmp_path) == []
    assert path.read_bytes() == before
    writer.close()


def test_name_that_means_another_file_by_now_is_not_touched(tmp_path: Path) -> None:
    """A file sealed between open and lock is not cut, though its lock is free."""
    path = abandon(tmp_path, b"sealed meanwhile")
    fd = os.open(path, os.O_RDWR)
    try:
        path.rename(tmp_path / "c.warc.gz")
        assert not lock_named(fd, path)
        abandon(tmp_path, b"somebody else's")
        assert not lock_named(fd, path)
    finally:
        os.close(fd)


def test_file_whose_final_name_is_taken_waits_and_holds_up_nobody(tmp_path: Path) -> None:
    """Nothing is overwritten; the other abandoned files are recovered all the same."""
    data = warc_bytes(tmp_path, 1)
    (tmp_path / "a.warc.gz").write_bytes(b"other")
    abandon(tmp_path, data, "a.warc.gz.open")
    abandon(tmp_path, data, "b.warc.gz.open")
    assert [recovered.path.name for recovered in recover_directory(tmp_path)] == ["b.warc.gz"]
    assert (tmp_path / "a.warc.gz").read_bytes() == b"other"
    assert (tmp_path / "a.warc.gz.open").read_bytes() == data


@pytest.mark.parametrize("was_complete", [False, True])
def test_damage_is_kept_beside_the_file(tmp_path: Path, was_complete: bool) -> None:
    """A damaged member may hold a page: it is copied before it is taken out.

    What lies behind it is kept there, too, if the power may have failed: it may refer to what was lost.
    """
    data = warc_bytes(tmp_path, 3)
    ends = member_ends(data)
    at = (ends[1] + ends[2]) // 2
    damaged = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
    abandon(tmp_path, damaged)
    path = tmp_path / "c.warc.gz"
    until = ends[2] if was_complete else len(data)
    sound = data[: ends[1]] + data[until:]
    records = len(ends) - 1 if was_complete else 2
    found = recover_file(tmp_path / "c.warc.gz.open", was_complete=was_complete)
    assert found == RecoveredFile(path, records, len(sound), len(data) - len(sound))
    assert path.read_bytes() == sound
    assert len(read_checked(path)) == records
    assert (tmp_path / "c.warc.gz.damaged").read_bytes() == damaged[ends[1] : until]


@pytest.mark.parametrize("lost", Lost)
def test_power_cut_while_damage_is_taken_out_costs_no_sound_record(tmp_path: Path, lost: Lost) -> None:
    """The next repair finds the damaged file, or the one without the damage, and the damage is kept."""
    data = warc_bytes(tmp_path, 3)
    ends = member_ends(data)
    damaged = data[: ends[2] - 9] + b"\0\0\0\0" + data[ends[2] - 5 :]
    sound = data[: ends[1]] + data[ends[2] :]
    (tmp_path / "first").mkdir()
    abandon(tmp_path / "first", damaged)
    medium = Medium({"c.warc.gz.open": damaged})
    recover_file(tmp_path / "first" / "c.warc.gz.open", files=medium, was_complete=True)
    for count in range(len(medium.journal) + 1):
        survivors = Survivors(medium.found)
        for change in medium.journal[:count]:
            change(survivors)
        directory = tmp_path / str(count)
        directory.mkdir()
        for name, content in survivors.after(lost, random.Random(count)).items():
            (directory / name).write_bytes(content)
            grow_old(directory / name)
        recover_file(directory / "c.warc.gz.open", was_complete=True)
        assert (directory / "c.warc.gz").read_bytes() == sound
        assert (directory / "c.warc.gz.damaged").read_bytes() == damaged[ends[1] : ends[2]]


def test_blocks_never_written_are_cut_off(tmp_path: Path) -> None:
    """A tail of zeros, which a power failure leaves, holds nothing to keep."""
    data = warc_bytes(tmp_path, 1)
    abandon(tmp_path, data + bytes(300_000))
    assert recover_directory(tmp_path) == [RecoveredFile(tmp_path / "c.warc.gz", 3, len(data), 300_000)]
    assert os.listdir(tmp_path) == ["c.warc.gz"]  # noqa: PTH208


def test_recovery_stops_when_told_and_leaves_the_file_for_the_next_time(tmp_path: Path) -> None:
    """A node that closes does not wait for a long scan."""
    data = warc_bytes(tmp_path, 2)
    path = abandon(tmp_path, data + b"torn")
    assert recover_directory(tmp_path, should_stop=lambda: True) == []
    assert path.read_bytes() == data + b"torn"
    assert [recovered.cut_bytes for recovered in recover_directory(tmp_path)] == [4]


def test_records_larger_than_a_buffer_are_recovered_and_verified(tmp_path: Path) -> None:
    """A record of several buffers, packed and unpacked, is one record."""
    body = os.urandom(700_000) + bytes(3_000_000)
    data = warc_bytes(tmp_path, 2, body)
    path = tmp_path / "c.warc.gz"
    abandon(tmp_path, data[:-1])
    assert [recovered.kept_records for recovered in recover_directory(tmp_path)] == [4]
    assert verify_file(path) == (4, 0, "")
    assert [r.body for r in read_checked(path) if r.type == "response"] == [body, body]


def test_verify_reports_any_flipped_byte(tmp_path: Path) -> None:
    """A changed byte is found, or the record still unpacks to what it was."""
    data = warc_bytes(tmp_path, 1)
    start, path = member_ends(data)[-2], tmp_path / "c.warc.gz"
    for at in range(start, len(data)):
        flipped = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        path.write_bytes(flipped)
        count, _, problem = verify_file(path)
        if not problem:
            assert gzip_members(flipped) == gzip_members(data)
        else:
            assert count == 2
            assert f"byte {start}" in problem


def test_verify_reports_a_torn_tail(tmp_path: Path) -> None:
    """A file cut at any byte of its last record is said to be torn there, with the whole ones counted."""
    data = warc_bytes(tmp_path, 1)
    start, path = member_ends(data)[-2], tmp_path / "c.warc.gz"
    for size in range(start + 1, len(data)):
        path.write_bytes(data[:size])
        assert verify_file(path) == (2, 1, f"torn record at byte {start}")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda one, two: [one + two], "more than one record in a member"),
        (lambda one, two: [one[:-1]], "ends in"),
        (lambda one, two: [one.replace(b"page", b"pages")], "and its block has"),
        (lambda one, two: [one.replace(b"page", b"pag")], "ends in"),
        (lambda one, two: [one[:-8]], "4 bytes short of its Content-Length"),
        (lambda one, two: [one.replace(b"page", b"gape")], "block digest is"),
        (lambda one, two: [one.replace(b"WARC/1.1", b"HTTP/1.1", 1)], "begins with b'HTTP/1.1"),
        (lambda one, two: [one[:100]], "no end of its head"),
        (lambda one, two: [b"x" * 100_000], "no end of its head"),
        (lambda one, two: [one.replace(b"Content-Length: ", b"Content-Length: -")], "Content-Length is b'-"),
        (lambda one, two: [one.replace(b"WARC-Type", b"WARC-Kind")], "no WARC-Type"),
        (lambda one, two: [one, b"this is no gzip member"], "cannot be unpacked"),
    ],
)
def test_verify_reports_records_that_gzip_cannot_see(tmp_path: Path, change, problem: str) -> None:
    """Well-packed members that are not exactly one well-formed record are named."""
    parts = change(*exchange_records(exchange(0, b"page"), b"<urn:uuid:0>"))
    packed = [part if part == b"this is no gzip member" else isal_zlib.compress(part, 2, 31) for part in parts]
    path = tmp_path / "c.warc.gz"
    path.write_bytes(b"".join(packed))
    count, places, found = verify_file(path)
    assert places == 1
    assert count == len(packed) - 1
    assert problem in found


def test_every_acknowledged_exchange_survives_kill_9(tmp_path: Path) -> None:
    """What write() returned for is in the files, whole, in order and once, after the writer was killed."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.warc.kill_writer", tmp_path],
        stdout=subprocess.PIPE,
        cwd=PROJECT,
    )
    assert writer.stdout
    with writer:
        acknowledged = [int(line) for line in itertools.islice(writer.stdout, 300)]
        writer.kill()
        acknowledged += [int(line) for line in writer.stdout if line.endswith(b"\n")]
    assert acknowledged == list(range(len(acknowledged)))
    for path in tmp_path.glob("*.open"):  # one that had just been begun, and is empty, is closed when it is quiet
        grow_old(path)
    assert len(recover_directory(tmp_path)) <= 1
    files = sorted(tmp_path.iterdir(), key=lambda path: path.name.split("-")[-2])
    assert len(files) > 1
    assert {path.suffix for path in files} == {".gz"}
    stored = [number for path in files for number in numbers_of(read_checked(path))]
    assert stored == list(range(len(stored)))
    assert len(acknowledged) <= len(stored) <= len(acknowledged) + 1
