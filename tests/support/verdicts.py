"""What a crawl of a known web must have come to, by the server's own log."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.simweb.check.checker import Report
    from bigcrawl.simweb.check.findings import Gap


def assert_complete(report: Report, may_repeat: Counter[str] | None = None) -> None:
    """Coverage 1, nothing impolite, and fetched or retried more often only what may be."""
    allowed = may_repeat or Counter()
    repeats = {"refetched", "over_retried"}
    assert not report.kinds - repeats, str(report)
    more: Counter[str] = Counter()
    for again in report.refetched:
        more[again.url] += again.times - 1
    for retried in report.over_retried:
        more[retried.url] += retried.retries - retried.allowed
    over = more - allowed
    assert not over, f"fetched again without having been in process: {over}"


def was_untold(gap: Gap, delay_ms: int) -> bool:
    """Whether the crawl's own delay was kept, and the host's Crawl-delay was known to nobody.

    Either the host did not answer for its robots.txt, or the node died that had asked.
    """
    return gap.gap_ms >= delay_ms and {gap.earlier.target, gap.later.target} == {"/robots.txt"}


def pause(seconds: float) -> None:
    """Let other processes work; never used to wait for something that can be asked for."""
    threading.Event().wait(seconds)
