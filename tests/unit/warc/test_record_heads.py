"""What a gzip file is that holds no WARC records, or several in a member."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.record_heads import RecordHead, record_heads
from bigcrawl.warc.segments import WarcWriter
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from pathlib import Path


def warc(directory: Path) -> bytes:
    """A file of two exchanges."""
    writer = WarcWriter(directory, "c", "n")
    for number in range(2):
        writer.write(exchange(number))
    writer.close()
    (path,) = directory.glob("*.warc.gz")
    return path.read_bytes()


def read(path: Path) -> tuple[list[RecordHead], str]:
    """All heads, and what is wrong."""
    heads: list[RecordHead] = []
    try:
        heads.extend(record_heads(path))  # what was yielded before an error stays
    except CorruptionError as error:
        return heads, str(error)
    return heads, ""


def test_a_sound_file_is_not_strange(tmp_path: Path) -> None:
    """Each record has a member, also for the writers of other crawlers, which may end a record otherwise."""
    data = warc(tmp_path)
    heads, problem = read(next(tmp_path.glob("*.warc.gz")))
    assert (len(heads), problem) == (5, "")
    sloppy = tmp_path / "sloppy.warc.gz"
    sloppy.write_bytes(data + gzip.compress(b"WARC/1.0\r\nContent-Length: 4\r\n\r\npage\r\n"))
    assert read(sloppy)[1] == ""


@pytest.mark.parametrize("content", [b"hello\n", b"", b"<html>" + b"x" * 100_000])
def test_a_gzip_file_of_something_else_is_told(tmp_path: Path, content: bytes) -> None:
    """It was indexed as a file without pages."""
    path = tmp_path / "c.warc.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(CorruptionError, match="expected a WARC record"):
        list(record_heads(path))


def test_records_that_share_a_member_are_told_with_the_remedy(tmp_path: Path) -> None:
    """Nobody can find a record in the middle of a member; the others of the file are read all the same."""
    data = warc(tmp_path)
    path = tmp_path / "whole.warc.gz"
    path.write_bytes(gzip.compress(gzip.decompress(data)) + data)
    heads, problem = read(path)
    assert len(heads) == 6
    assert "at byte 0" in problem
    assert "warcio recompress" in problem


def test_what_lies_between_records_keeps_none_from_being_read(tmp_path: Path) -> None:
    """It is told after all of them."""
    data = warc(tmp_path)
    path = tmp_path / "between.warc.gz"
    path.write_bytes(gzip.compress(b"not a record") + data)
    heads, problem = read(path)
    assert len(heads) == 5
    assert "b'not a record'" in problem
