from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl_simweb.basics.exchange import Exchange
from bigcrawl_simweb.serve.access_log import AccessLog, LogLine, read_exchanges, read_log

if TYPE_CHECKING:
    from pathlib import Path

FIRST = LogLine(1000, 1010, "127.0.0.1:5", "127.16.0.1", "127.16.0.1", "GET", "/a?b=%20", 200, 345)
SECOND = LogLine(1020, 1021, "127.0.0.1:5", "127.16.0.1", "127.16.0.1", "-", "-", 400, 99)
THIRD = LogLine(1030, 1040, "127.0.0.1:6", "www.x.example", "127.16.0.9", "GET", "/", 503, 0, "silent", 7000)


def written(path: Path, *lines: LogLine) -> Path:
    log = AccessLog(path)
    for line in lines:
        log.write(line)
    log.close()
    return path


def test_lines_are_read_as_they_were_written(tmp_path: Path):
    """A log holds every field of every line, across several openings."""
    path = written(tmp_path / "log", FIRST)
    written(path, SECOND, THIRD)
    assert list(read_log(path)) == [FIRST, SECOND, THIRD]


def test_log_is_read_as_the_checker_takes_it(tmp_path: Path):
    """Exchanges have the server only where it is not the host itself, and all that befell the answer."""
    path = written(tmp_path / "log", FIRST, THIRD)
    assert list(read_exchanges(path)) == [
        Exchange(1000, 1010, "127.16.0.1", "/a?b=%20", 200, fault="-"),
        Exchange(1030, 1040, "www.x.example", "/", 503, "127.16.0.9", "silent", 7000),
    ]


def test_columns_are_those_of_the_first_line(tmp_path: Path):
    """The format's number and the names of its columns stand at the top, for whoever reads it with other tools."""
    header = written(tmp_path / "log", FIRST).read_text().splitlines()[0].split("\t")
    assert header[0] == "# simweb log 2"
    assert [name.replace("bytes", "sent_bytes") for name in header[1:]] == list(LogLine._fields)


def test_line_is_in_the_file_at_once(tmp_path: Path):
    """A written line does not wait in the process for more: kill -9 loses none."""
    log = AccessLog(tmp_path / "log")
    log.write(FIRST)
    assert list(read_log(tmp_path / "log")) == [FIRST]
    log.close()


def test_torn_last_line_is_passed_over_and_then_cut_off(tmp_path: Path):
    """Half a line at the end is no line, and does not spoil the one after it."""
    path = written(tmp_path / "log", FIRST, SECOND)
    path.write_bytes(path.read_bytes()[:-20])
    assert list(read_log(path)) == [FIRST]
    written(path, SECOND)
    assert list(read_log(path)) == [FIRST, SECOND]


def test_damaged_line_is_named_by_file_and_offset(tmp_path: Path):
    """A line in the middle that is none is an error that says where."""
    path = written(tmp_path / "log", FIRST, SECOND)
    offset = path.read_bytes().index(b"1000")
    path.write_bytes(path.read_bytes().replace(b"1000\t", b"1000 "))
    with pytest.raises(CorruptionError) as caught:
        list(read_log(path))
    assert (caught.value.path, caught.value.offset) == (str(path), offset)


def test_other_files_are_refused(tmp_path: Path):
    """Neither a log of another format nor a missing one is taken for an empty log."""
    path = tmp_path / "log"
    with pytest.raises(ConfigError, match="cannot be read"):
        list(read_log(path))
    for other in ("# simweb log 1\tstart_ms\n", "rubbish\n", "# simweb log 2\tother\n"):
        path.write_text(other)
        with pytest.raises(ConfigError, match=r"begins with .*, not with '# simweb log 2' and its columns; give the"):
            list(read_log(path))
        with pytest.raises(ConfigError, match="to append to; move it away"):
            AccessLog(path)
        assert path.read_text() == other
    with pytest.raises(ConfigError, match="cannot be opened"):
        AccessLog(tmp_path / "nowhere" / "log")
