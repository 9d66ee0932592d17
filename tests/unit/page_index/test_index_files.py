"""CDXJ files are those that others would make, whole or not there, and can be made again at any time."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, BinaryIO

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from bigcrawl.page_index import sorted_lines
from bigcrawl.page_index.cdxj import read_line
from bigcrawl.page_index.index_files import index_file, index_path, unindexed_files
from bigcrawl.page_index.lookup import find_captures, lines_from
from bigcrawl.warc.records import Note, new_record_id
from bigcrawl.warc.segments import WarcWriter
from bigcrawl.warc.verification import verify_file
from tests.support.content_types import UNTOLD, Row
from tests.unit.page_index.reference import reference_lines
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from pathlib import Path

URLS = [
    "http://b.example/x?b=2&a=1",
    "https://www.b.example/x?a=1&b=2",
    "http://a.example/",
    'http://a.example/"quoted"\\u00e9',
    "http://a.example:8080/%7Euser/",
    "http://[::1]/",
    "http://a.example/" + "long/" * 400,
]


def warc_file(directory: Path, urls: list[str] = URLS) -> Path:
    """A sealed file with a page of each URL, notes on some, and odd answers."""
    before = set(directory.glob("*.warc.gz"))
    writer = WarcWriter(directory, "c", "n")
    for number, url in enumerate(urls):
        record_id = new_record_id()
        told = [(b"Content-Type", b"text/html; charset=utf-8"), (b"Content-Type", b"text/plain")]
        headers = told if number % 3 else []
        status = (200, 404, 301)[number % 3]
        page = exchange(number, b"page %d" % (number % 5), response_headers=headers, status=status, record_id=record_id)
        writer.write(page._replace(url=url, date_ms=page.date_ms + number * 1000))
        if number % 2:
            writer.write(Note(url, record_id, page.date_ms, {"robots": "noarchive"}))
    writer.close()
    [path] = set(directory.glob("*.warc.gz")) - before
    return path


def test_the_lines_are_those_of_warcio_and_surt(tmp_path: Path) -> None:
    """Key, time, and every field with its name and spelling, in the order of the bytes; fastwarc counts as many."""
    path = warc_file(tmp_path)
    indexed = index_file(path, ["cdxj"])
    assert indexed == (path, len(URLS), "")
    lines = index_path(path).read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    expected = reference_lines(path)
    assert [read_line(line).key for line in lines] == [key for key, _, _ in expected]
    assert [line.split(b" ", 2)[1].decode() for line in lines] == [stamp for _, stamp, _ in expected]
    told = [list(json.loads(line.split(b" ", 2)[2]).items()) for line in lines]
    assert told == [list(fields.items()) for _, _, fields in expected]
    with path.open("rb") as file:
        assert sum(1 for _ in ArchiveIterator(file, record_types=WarcRecordType.response)) == len(lines)


@pytest.mark.parametrize("row", UNTOLD, ids=lambda row: row.name)
def test_type_that_is_not_told_is_that_of_the_bytes(tmp_path: Path, row: Row) -> None:
    """But for text and binary, which is what is left; a packed body says nothing."""
    writer = WarcWriter(tmp_path, "c", "n")
    for number, headers in enumerate(([], [(b"Content-Encoding", b"gzip")])):
        writer.write(exchange(number, row.body, response_headers=headers))
    writer.close()
    [path] = tmp_path.glob("*.warc.gz")
    index_file(path, ["cdxj"])
    mimes = [read_line(line).mime for line in index_path(path).read_bytes().splitlines(keepends=True)]
    assert mimes == ["unk" if row.type in ("text/plain", "application/octet-stream") else row.type, "unk"]


def test_the_answer_to_a_head_is_no_capture(tmp_path: Path) -> None:
    """It has the status of the page and no body, so whoever asks for the page would get an empty one."""
    writer = WarcWriter(tmp_path, "c", "n")
    for number, method in enumerate(("HEAD", "GET", "HEAD")):
        writer.write(exchange(number, b"" if method == "HEAD" else b"page", method=method)._replace(url=URLS[0]))
    writer.close()
    [path] = tmp_path.glob("*.warc.gz")
    indexed = index_file(path, ["cdxj"])
    assert indexed == (path, 1, "")
    [line] = index_path(path).read_bytes().splitlines()
    with path.open("rb") as file:
        _, got, _ = ArchiveIterator(file, record_types=WarcRecordType.response)
        assert read_line(line).offset == got.stream_pos


def test_an_index_is_the_same_in_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for a few lines makes the same bytes."""
    path = warc_file(tmp_path)
    index_file(path, ["cdxj"])
    whole = index_path(path).read_bytes()
    monkeypatch.setattr(sorted_lines.SortedLines.__init__, "__defaults__", (300,))
    index_file(path, ["cdxj"])
    assert index_path(path).read_bytes() == whole


def test_a_file_that_is_cut_is_indexed_up_to_there(tmp_path: Path) -> None:
    """At any byte of its last page: the pages before it are in the index, and the problem is told."""
    path = warc_file(tmp_path, URLS[:3])
    data = path.read_bytes()
    offsets = sorted(int(fields["offset"]) for _, _, fields in reference_lines(path))
    for size in range(offsets[-1] + 1, len(data), 7):
        path.write_bytes(data[:size])
        indexed = index_file(path, ["cdxj"])
        assert indexed is not None
        is_between_records = not verify_file(path).problem
        assert indexed.problem.startswith(f"{path}: damaged at byte ") is not is_between_records
        assert indexed.pages == len(index_path(path).read_bytes().splitlines())
        assert indexed.pages in {2, 3}


def test_a_disk_that_fills_up_leaves_the_old_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays whole, and nothing lies about."""
    path = warc_file(tmp_path)
    index_file(path, ["cdxj"])
    before = index_path(path).read_bytes()

    def refuse(index: object, file: BinaryIO) -> None:
        file.write(b"a.example)/ 2")
        file.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bigcrawl.page_index.cdxj.CdxjIndex.write", refuse)
    with pytest.raises(OSError, match="No space"):
        index_file(path, ["cdxj"])
    assert index_path(path).read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == [index_path(path).name, path.name]  # noqa: PTH208


def test_what_a_dead_maker_left_is_overwritten(tmp_path: Path) -> None:
    """Half an index that a killed process left has no name of an index, and harms nothing."""
    path = warc_file(tmp_path)
    left = index_path(path).with_name(index_path(path).name + ".new")
    left.write_bytes(b"half a line")
    assert unindexed_files(tmp_path, ["cdxj"]) == [path]
    index_file(path, ["cdxj"], mode=0o640)
    assert not left.exists()
    assert index_path(path).stat().st_mode & 0o777 == 0o640
    assert unindexed_files(tmp_path, ["cdxj"]) == []


def test_two_do_not_make_the_same_index(tmp_path: Path) -> None:
    """Whoever comes second leaves it to the first; and a file that is gone is nobody's."""
    path = warc_file(tmp_path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert index_file(path, ["cdxj"]) is None
    assert index_file(path, ["cdxj"]) is not None
    path.unlink()
    assert index_file(path, ["cdxj"]) is None


def test_captures_of_a_url_are_found_in_all_files(tmp_path: Path) -> None:
    """By any spelling with the same key, the oldest first; other URLs of the same beginning are not."""
    for number in range(3):
        urls = [f"http://a.example/{n:03d}" for n in range(number, 100)]
        index_file(warc_file(tmp_path, urls), ["cdxj"])
        (tmp_path / "damaged.cdxj").write_bytes(b"example,a)/050 2 no json\n")
    for number, count in ((0, 1), (1, 2), (50, 3), (99, 3)):
        found = find_captures(tmp_path, f"https://www.a.example/{number:03d}/")
        assert [one.url for one in found] == [f"http://a.example/{number:03d}"] * count
        assert [one.stamp for one in found] == sorted(one.stamp for one in found)
    assert find_captures(tmp_path, "http://a.example/05") == find_captures(tmp_path, "http://z.example/") == []


def test_every_line_of_a_file_is_found_by_bisection(tmp_path: Path) -> None:
    """The first, the last, long and short ones, and none that is not there."""
    keys = sorted({b"%d%s " % (n * n, b"x" * (n % 40)) for n in range(200)})
    path = tmp_path / "lines"
    path.write_bytes(b"".join(key + b"value\n" for key in keys))
    with path.open("rb") as file:
        for key in keys:
            assert list(lines_from(file, key)) == [key + b"value\n"]
        for key in (b"", b"!", b"~", b"5 5"):
            assert list(lines_from(file, key)) == [k + b"value\n" for k in keys if k.startswith(key)]


def test_the_process_tells_each_file_and_fails_for_one(tmp_path: Path) -> None:
    """A line of JSON a file; one that cannot be read makes the status 1, and the others are made."""
    path = warc_file(tmp_path)
    other = tmp_path / "directory.warc.gz"
    other.mkdir()
    command = [sys.executable, "-m", "bigcrawl.page_index", "--mode", "644", str(other), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert told[0]["path"] == str(other)
    assert "directory" in told[0]["error"]
    assert told[1] == {"path": str(path), "pages": len(URLS), "problem": ""}
    assert index_path(path).exists()
