"""A JOBDIR of Scrapy's own scheduler is read as it would go on; damage costs no more than what it hit."""

from __future__ import annotations

import os
import pickle
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from queuelib import FifoDiskQueue, LifoDiskQueue
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.utils.test import get_crawler

from bigcrawl.commands.moving.importing import ENTRY_BYTES_MAX
from bigcrawl.exceptions import ConfigError
from bigcrawl.url.scrapy_fingerprint import fingerprint_of
from bigcrawl_foreign import jobdir
from bigcrawl_foreign.jobdir import JobDir

if TYPE_CHECKING:
    from pathlib import Path

QUEUES = ("PickleLifoDiskQueue", "PickleFifoDiskQueue", "PickleFifoSQLiteQueue")
URLS = [f"http://a.example/{number}" for number in range(20)]


def stopped_job(directory: Path, queue: str, fetched: int) -> list[str]:
    """Queue all URLs with Scrapy's scheduler, take some, and close it. Return those that were taken."""
    settings = {
        "JOBDIR": str(directory),
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "SCHEDULER_DISK_QUEUE": f"scrapy.squeues.{queue}",
        "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    }
    crawler = get_crawler(Spider, settings)
    crawler.spider = crawler._create_spider("job")
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    for number, url in enumerate(URLS):
        assert scheduler.enqueue_request(Request(url, priority=number % 3, meta={"job": (1, 2)}))
    taken = [scheduler.next_request() for _ in range(fetched)]
    scheduler.close("finished")
    return [request.url for request in taken if request is not None]


def entries_below(directory: Path) -> list[dict[str, Any]]:
    found = [entry for path in jobdir._queues_below(directory) for entry in jobdir._entries_of(path)]
    return [pickle.loads(entry) if isinstance(entry, bytes) else {"url": entry} for entry in found]  # noqa: S301


@pytest.mark.parametrize("queue", QUEUES)
def test_queue_of_scrapy_is_read(tmp_path: Path, queue: str) -> None:
    """Everything that waits, the highest priority first; and every request that was ever queued is known."""
    fetched = stopped_job(tmp_path, queue, 6)
    assert len(fetched) == 6
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found = entries_below(tmp_path / "requests.queue")
    assert sorted(fetched + [one["url"] for one in found]) == sorted(URLS)
    priorities = [one["priority"] for one in found]
    assert priorities == sorted(priorities, reverse=True)
    known = jobdir._read_seen(tmp_path / "requests.seen")
    assert set(known.tolist()) == {fingerprint_of("scrapy", url) for url in URLS}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_early_list_of_fingerprints_is_read(tmp_path: Path) -> None:
    """As text, a line each; a cut line at the end is left out, and other things are an error."""
    seen = tmp_path / "requests.seen"
    seen.write_text("".join(f"{number:040x}\n" for number in range(50_000)) + "12")
    assert jobdir._read_seen(seen).tolist() == [0]
    seen.write_text("".join(f"{number:08x}{'0' * 32}\n" for number in range(50_000)))
    assert len(jobdir._read_seen(seen)) == 50_000
    for text in ("x" * 41, "http://a.example/\n" * 30, "\0\x14" + "x" * 42):
        seen.write_text(text)
        with pytest.raises(ConfigError, match="no SHA-1 fingerprints"):
            jobdir._read_seen(seen)


@pytest.mark.parametrize("kind", [LifoDiskQueue, FifoDiskQueue])
def test_damaged_queue_gives_what_is_whole(tmp_path: Path, kind: Any) -> None:
    """Cut anywhere it ends with a mark or early, and never raises; an entry that is too large is its size."""
    path = tmp_path / "queue"
    queue = kind(str(path))
    entries = [b"first", b"x" * (ENTRY_BYTES_MAX + 1), b"last"]
    for entry in entries:
        queue.push(entry)
    queue.close()
    wanted = [b"first", len(entries[1]), b"last"]
    found = list(jobdir._entries_of(path))
    assert found == (wanted if kind is FifoDiskQueue else wanted[::-1])
    file = path if kind is LifoDiskQueue else path / "q00000"
    whole = file.read_bytes()
    for length in (0, 1, 3, 4, 5, 7, 12, len(whole) - 1, len(whole) - 5):
        file.write_bytes(whole[:length])
        assert all(
            entry in (*wanted, jobdir._DAMAGED) or isinstance(entry, bytes) for entry in jobdir._entries_of(path)
        )


def test_folder_that_is_no_jobdir_is_refused(tmp_path: Path) -> None:
    """In a line that says what it lacks."""
    with pytest.raises(ConfigError, match="is not a JOBDIR"):
        JobDir(str(tmp_path), Any)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW queue AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n",
        "CREATE TABLE queue (id INTEGER, item BLOB GENERATED ALWAYS AS (zeroblob(1000000000)))",
        "CREATE TABLE queue (id INTEGER, item BLOB AS (zeroblob(1000000000)))",
    ],
)
def test_queue_that_is_computed_is_not_read(tmp_path: Path, made: str) -> None:
    """A file of some kilobytes could stand for rows without end, or for rows of any size."""
    queue = tmp_path / "0"
    with closing(sqlite3.connect(queue)) as database, database:
        database.execute(made)
        if "TABLE" in made:
            database.execute("INSERT INTO queue (id) VALUES (1)")
    assert list(jobdir._entries_of(queue)) == [jobdir._DAMAGED]


def test_odd_names_and_pipes_are_passed_over(tmp_path: Path) -> None:
    """A number is one of ASCII digits; a pipe would be waited for."""
    for name in ("\N{SUPERSCRIPT TWO}", "--5", "5"):
        (tmp_path / name).write_bytes(b"")
    os.mkfifo(tmp_path / "7")
    assert [path.name for path in jobdir._queues_below(tmp_path)][-1] == "5"
    assert "7" not in [path.name for path in jobdir._queues_below(tmp_path)]
    (tmp_path / "info.json").write_text('{"tail": [Infinity, 0, 0]}')
    assert jobdir._first_waiting(tmp_path / "info.json") == (0, 0)
    (tmp_path / "info.json").write_text("[" * 4_000)
    assert jobdir._first_waiting(tmp_path / "info.json") == (0, 0)
