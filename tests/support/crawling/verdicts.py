"""What a crawl of a known web must have come to, by the server's own log."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Report
    from bigcrawl_simweb.check.findings import ShortGap
    from tests.support.crawling.crawls import SimulatedWeb

# What a process that is killed may cause by what it had in process: its URLs are fetched again, failed ones among them.
FETCHED_AGAIN = frozenset({"refetched", "over_retried"})
# P2 of docs/promises.md: URLs that ended in the last two seconds before a master was lost, and those that hung then.
FORGOTTEN_MS = 3_000


def assert_all_counted(log: str) -> None:
    """Each URL that was seen has ended, waits or is withheld, by the counts of all partitions when a node left."""
    assert "are in no place" not in log, log


def assert_complete(report: Report, may_repeat: Counter[str] | None = None) -> None:
    """Coverage 1, nothing impolite, and fetched or retried more often only what may be."""
    allowed = may_repeat or Counter()
    assert report.kinds <= FETCHED_AGAIN, str(report)
    more: Counter[str] = Counter()
    for again in report.refetched:
        more[again.url] += again.times - 1
    for retried in report.over_retried:
        more[retried.url] += retried.retries - retried.allowed
    over = more - allowed
    assert not over, f"fetched again without having been in process: {over}"


def refetched_without_cause(web: SimulatedWeb, report: Report, lost_ms: Sequence[int]) -> list[str]:
    """The URLs that were fetched again although no master was lost near the end of their first fetch."""
    again = {each.url for each in report.refetched}
    ends = {f"http://{each.host}:{web.saved.port}{each.target}": each.end_ms for each in reversed(web.exchanges())}
    return [url for url in again if not any(abs(ends[url] - at_ms) <= FORGOTTEN_MS for at_ms in lost_ms)]


def was_untold(gap: ShortGap, delay_ms: int) -> bool:
    """Whether the crawl's own delay was kept, and the host's Crawl-delay was known to nobody.

    Either the host did not answer for its robots.txt, or the node died that had asked.
    """
    return gap.gap_ms >= delay_ms and {gap.earlier.target, gap.later.target} == {"/robots.txt"}


def without_untold_gaps(report: Report, delay_ms: int) -> Report:
    """A report without the gaps that were shorter than a Crawl-delay that nobody knew."""
    return replace(report, host_too_soon=tuple(gap for gap in report.host_too_soon if not was_untold(gap, delay_ms)))


def warc_files(directory: Path) -> list[Path]:
    """The WARC files of a crawl that has ended. Nothing else is there but their indexes.

    A crawl does not wait for the process that makes the last one, which may not have begun yet.
    """
    wait_until(lambda: not list(directory.glob("*.new")), "the last index is made")
    indexes = (".cdxj", ".cdxj.new", ".parquet", ".parquet.new")
    files = sorted(path for path in directory.glob("[!.]*") if not path.name.endswith(indexes))
    assert files
    assert all(file.name.endswith(".warc.gz") for file in files), files
    return files


def indexes(directory: Path, ending: str) -> list[Path]:
    """The indexes of a crawl that has ended, which waits two seconds for them and leaves the rest to a process."""
    files = len(warc_files(directory))
    wait_until(lambda: len(list(directory.glob(f"*{ending}"))) == files, f"each WARC file has its {ending}")
    return sorted(directory.glob(f"*{ending}"))


def pause(seconds: float) -> None:
    """Let other processes work; never used to wait for something that can be asked for."""
    threading.Event().wait(seconds)
