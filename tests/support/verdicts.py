"""What a crawl of a known web must have come to, by the server's own log."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.simweb.checker import Report


def assert_complete(report: Report, may_repeat: Counter[str] | None = None) -> None:
    """Coverage 1, nothing impolite, and fetched more than once only what may be."""
    allowed = may_repeat or Counter()
    assert not report.missing, f"{len(report.missing)} lost: {report.missing[:5]}"
    assert not report.unexpected
    assert not report.wrong_status
    assert not report.concurrent, report.concurrent[:3]
    assert not report.host_too_soon, report.host_too_soon[:3]
    assert not report.disallowed
    assert not report.robots_not_first
    over = [again for again in report.refetched if again.times - 1 > allowed[again.url]]
    assert not over, f"fetched again without having been in process: {over}"


def pause(seconds: float) -> None:
    """Let other processes work; never used to wait for something that can be asked for."""
    threading.Event().wait(seconds)
