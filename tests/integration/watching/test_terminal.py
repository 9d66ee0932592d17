"""What a crawl looks like to who sits before it: a terminal of 80 columns, and a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

import pyte
import pytest

from bigcrawl.scan import CODE
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running import warm
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS, LINES = 80, 24
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[[\w.]+\] [A-Z]+: ")
ROW = re.compile(r"^[\d,]+ pages, [\d.]+/s, ")


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    """A crawl of a small web with pages that fail in many ways."""
    with SimulatedWeb(tmp_path / "web", hosts=3, pages=6, features="broken") as web:
        settings = {"BIGCRAWL_HOST_DELAY": 0.1, "DOWNLOAD_TIMEOUT": 2, "BIGCRAWL_BACKOFF": 1, "BIGCRAWL_BACKOFF_MAX": 1}
        with Crawl(
            tmp_path / "crawl", web.seeds, settings | {"RETRY_TIMES": 1, "STATS_DUMP": None, "BIGCRAWL_PARTITIONS": 8}
        ) as made:
            yield made


def in_a_terminal(crawl: Crawl) -> tuple[list[str], list[str]]:
    """Run the crawl in a terminal; the rows that stood at the bottom meanwhile, and all lines at the end."""
    screen = pyte.HistoryScreen(COLUMNS, LINES, history=100_000, ratio=1)
    stream = pyte.ByteStream(screen)
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = warm.start(crawl.command()[2:], env=crawl._environment(), stdout=its, stderr=its, cwd=crawl.directory)
    os.close(its)
    rows = []
    with contextlib.suppress(OSError):  # how a terminal says that all who wrote have ended
        while said := os.read(ours, 65_536):
            for part in re.split(rb"(?=[\r\n])", said):  # what came between two looks stood there, too
                stream.feed(part)
                if (row := screen.display[screen.cursor.y].rstrip()) and not LOG_LINE.match(row):
                    rows.append(row)
    os.close(ours)
    assert process.wait() == 0
    scrolled = ["".join(line[x].data for x in range(COLUMNS)) for line in screen.history.top]
    return rows, [line.rstrip() for line in [*scrolled, *screen.display]]


def test_terminal_has_one_row_of_progress_and_the_summary_last(crawl: Crawl) -> None:
    """The row never takes two, no line of the log begins in it, nothing of it stays; the summary is aligned and last.

    Pages that fail are no errors of the crawl, and Scrapy's stats are not dumped.
    """
    rows, lines = in_a_terminal(crawl)
    assert any(ROW.match(row) for row in rows)
    assert not [line for line in lines if re.search(r"pages, [\d.]+|\d+/s", line)]
    text = "\n".join(lines)
    assert len(LOG_LINE.findall(text)) == len([line for line in lines if LOG_LINE.match(line)]) > 5
    assert not re.search(r"\bERROR\b|Traceback", text)
    assert "Dumping Scrapy stats" not in text
    last = text.rstrip().splitlines()
    table = last[last.index("crawl test: finished") + 1 :]
    [end] = [number for number, line in enumerate(table) if line.startswith("WARC files: ")]
    assert len({len(line) for line in table[:end]}) == 1
    assert not any(map(LOG_LINE.match, table))


@pytest.mark.long("a terminal that is one; a row is a line elsewhere: tests/unit/extensions/test_row.py")
def test_pipe_gets_plain_lines(crawl: Crawl) -> None:
    """No control characters, a whole line of progress each time, and the summary last on standard output.

    Scrapy's own setting brings its dump of the stats back, with what bigcrawl counted.
    """
    crawl.settings["STATS_DUMP"] = True
    process = spawn(crawl.command(), env=crawl._environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, log = (said.decode() for said in process.communicate())
    assert process.returncode == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", out + log)
    lines = re.findall(r"^.* INFO: \d+ pages, [\d.]+ pages/s; hosts: .* MB$", log, re.MULTILINE)
    assert len(lines) >= 2
    assert not re.search(r"\bERROR\b|Traceback", log)
    assert out.rstrip().splitlines()[-1].startswith("WARC files: ")
    assert "Dumping Scrapy stats" in log
    assert "'bigcrawl/links/found'" in log
    assert f"links are read in {CODE}\n" in log
