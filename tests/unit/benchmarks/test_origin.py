"""Pages are counted by the origin's own log, while it is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.crawl.origin import Counts, LogCounter
from bigcrawl_simweb.serve.access_log import AccessLog, LogLine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AccessLog]:
    written = AccessLog(tmp_path / "access.log")
    yield written
    written.close()


def line(target: str, status: int = 200) -> LogLine:
    return LogLine(
        start_ms=1,
        end_ms=2,
        client="127.0.0.1:5",
        host="127.1.0.1",
        server="127.1.0.1",
        method="GET",
        target=target,
        status=status,
        sent_bytes=100,
    )


def test_pages_robots_and_other_answers_are_told_apart(log: AccessLog, tmp_path: Path) -> None:
    counter = LogCounter(tmp_path / "access.log")
    assert counter.read() == Counts(0, 0, 0)
    for written in (line("/robots.txt"), line("/page/1.html"), line("/page/2.html"), line("/page/3.html", 499)):
        log.write(written)
    assert counter.read() == Counts(pages=2, robots=1, others=1)
    log.write(line("/page/4.html"))
    assert counter.read() == Counts(pages=3, robots=1, others=1)
    counter.close()


def test_a_line_is_counted_when_it_is_whole(log: AccessLog, tmp_path: Path) -> None:
    log.write(line("/page/1.html"))
    whole = (tmp_path / "access.log").read_bytes()
    head = whole.index(b"\n") + 1
    grown = tmp_path / "grown.log"
    grown.write_bytes(whole[: head + 20])
    counter = LogCounter(grown)
    assert counter.read() == Counts(0, 0, 0)
    with grown.open("ab") as file:
        file.write(whole[head + 20 :])
    assert counter.read() == Counts(1, 0, 0)
    counter.close()
