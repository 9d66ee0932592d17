"""Figures of a crawl that never was, as large and as hostile as wanted."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from bigcrawl.features.tallies.tallies import Tallies
from bigcrawl.scheduler.crawl.history import COLUMNS, TIME_S
from bigcrawl.scheduler.crawl.samples import ROWS_MAX
from bigcrawl.views.figures import CrawlFigures, PldFigures
from bigcrawl.views.plds import TopPld
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.views.figures import Columns

BEGUN_S = 1_700_000_000.0


def history_of(times: list[float], pages_per_s: float = 10.0, stopped: tuple[float, float] = (0.0, 0.0)) -> Columns:
    """A history of a crawl that grows steadily, but for a time in which no node ran."""
    columns: Columns = {column.name: [0.0] * len(times) for column in COLUMNS}
    columns[TIME_S] = [BEGUN_S + time_s for time_s in times]
    done, before = 0.0, 0.0
    for at, time_s in enumerate(times):
        is_stopped = stopped[0] <= before < stopped[1]
        done += 0 if is_stopped else (time_s - before) * pages_per_s
        before = time_s
        columns["pages"][at] = done
        columns["bytes"][at] = done * 1e4
        columns["seen"][at] = done * 3
        columns["duplicates"][at] = done * 7
        columns["nodes"][at] = 0.0 if stopped[0] <= time_s < stopped[1] else 2.0
        columns["urls_disk"][at] = done * 2
    return columns


def status_of(**changes: Any) -> dict[str, Any]:
    """A status as the command returns it."""
    urls = dict.fromkeys(("inbox", "disk", "withheld", "unrunnable", "queued", "taken", "damaged", "ended", "seen"), 0)
    return {
        "finished": False,
        "nodes": {},
        "standstill": [],
        "partitions": {"all": 256, "owned": 0},
        "hosts": {"ready": 1, "waiting": 2, "busy": 3, "snoozed": 1, "retired": 4},
        "urls": {**urls, "disk": 50, "seen": 300},
        **changes,
    }


def figures_of(tmp_path: Path, tallies: Tallies | None = None, **changes: Any) -> CrawlFigures:
    """Figures of a small crawl."""
    counts = Counter(
        {
            "status:200": 90,
            "status:404": 10,
            "error:timeout": 4,
            "dropped:forbidden": 6,
            "retried:status:503": 2,
            "robots": 8,
            "bytes": 1_000_000,
            "seen": 300,
            "duplicates": 700,
            "ended": 110,
            "appended_urls": 1_000,
        }
    )
    given: dict[str, Any] = {
        "config": make_config(tmp_path, "crawl"),
        "time_s": BEGUN_S + 1_000,
        "status": status_of(),
        "counts": counts,
        "history": history_of([n * 10.0 for n in range(100)]),
        "counted": tallies or Tallies(),
        "unreadable": 0,
        "may_repeat": 1,
        "errors": [],
        "plds": PldFigures([], [], {}, None, 0),
        **changes,
    }
    return CrawlFigures(**given)


def full_tallies(plds: int) -> Tallies:
    """Tallies of many PLDs, with long names and types."""
    tallies, dice = Tallies(), random.Random(5)
    for number in range(plds):
        pld = f"pld{number:07}{'x' * 40}.example"
        tallies.record_page(f"www.{pld}", pld, f"2001:db8::{number % 65_536:x}", 20_000)
        tallies.record_answer(200, b"type%d/%s" % (number % 5_000, b"x" * 40), b"gzip", dice.randrange(1 << 22))
        if number < 40_000:
            tallies.host_gaps.count_gap(pld, 1_000 + dice.randrange(100_000), 1_000)
            tallies.server_gaps.count_gap(pld, 500 + dice.randrange(100_000), 500)
            tallies.space_gaps.count_gap(f"pld {pld}", 500 + dice.randrange(100_000), 500)
    return tallies


def large_figures(tmp_path: Path, plds: int) -> CrawlFigures:
    """Figures of a crawl of so many PLDs that all lists are as long as they get."""
    tallies = full_tallies(plds)
    long_url = f"http://{'a' * 60}.example/" + "<&\"'>" * 200
    errors = [
        {
            "reason": f"status:{400 + n % 200}",
            "pld": f"{n}{'y' * 60}.example",
            "fetches": n,
            "last": "x",
            "example": long_url,
        }
        for n in range(2_000)
    ]
    top = [TopPld(row.name, row.times, row.amount, 1 << 20, 5, 10_000) for row in tallies.pages_by_pld.rows()[:50]]
    sampled: list[tuple[int, int | None]] = [(n, n * n) for n in range(512)]
    return figures_of(
        tmp_path,
        tallies,
        history=history_of([n * 600.0 for n in range(ROWS_MAX)]),
        errors=errors[:50],
        plds=PldFigures(top, sampled, dict.fromkeys(range(1, 33), 1_000), 10**9, 3),
        counts=Counter({f"status:{n}": 10**9 for n in range(100, 1_000)} | {"seen": 10**11, "robots": 10**8}),
    )
