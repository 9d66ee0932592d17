"""The screen of `scrapy frontier top` in terminals of any size."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from bigcrawl.commands.looking.top_screen import screen_of
from bigcrawl.views.watching import PollResults, totals_of
from tests.support.running.tables import each

HEAD_LINES = 6  # crawl, pages, a second, hosts, URLs, partitions


def status_of(
    nodes: int = 1, standstill: tuple[str, ...] = (), outcomes: dict[str, int] | None = None
) -> dict[str, Any]:
    node = {"partitions": 4, "held": 3, "fetches_max": 64, "outbox": 5, "pages_per_s": 1.5, "items_per_s": 0.5}
    return {
        "crawl": "test",
        "finished": False,
        "nodes": {f"node{number}": node for number in range(nodes)},
        "partitions": {"all": 4, "owned": 4, "damaged": 0, "missing": 0, "begun_anew": 0},
        "rejected": {"entries": 0, "below": []},
        "hosts": {"ready": 1, "waiting": 2, "busy": 3, "snoozed": 4, "retired": 5},
        "urls": {
            "inbox": 1,
            "disk": 2,
            "withheld": 3,
            "unrunnable": 0,
            "queued": 4,
            "taken": 5,
            "damaged": 0,
            "missing": 0,
            "may_refetch": 0,
            "lost": 0,
            "uncounted": 0,
            "ended": 6,
            "seen": 7,
            "dead": 0,
        },
        "unrunnable": {},
        "waits_for_code": "",
        "pages": 8,
        "items": 3,
        "log": {"warnings": 0, "errors": 0},
        "paused": [],
        "bytes": 9_000_000,
        "copies": {"exact": 0, "near": 0},
        "mirrors": 0,
        "outgoing": {"bytes_per_s": 0.0, "look_ups_per_s": 0.0},
        "pages_per_s": 1.5,
        "outcomes": outcomes or {},
        "done_in_s": None,
        "revisits": {"waiting": 0, "overdue": 0, "late_s": 0},
        "tail": None,
        "discovery": {"is_on": True, "off_from": None, "off_until": None},
        "standstill": list(standstill),
    }


def error_of(reason: str, fetches: int) -> dict[str, Any]:
    return {"reason": reason, "fetches": fetches, "plds": 2, "worst": [{"pld": "a.example", "fetches": fetches - 1}]}


def host_of(name: str, queued: int, failures: int = 0) -> dict[str, Any]:
    row = {"host": name, "state": "waiting", "due_in_s": 1.5, "queued": queued, "taken": 0, "rest_s": 2.0}
    return {**row, "failures": failures, "why": "error:dns" if failures else ""}


def seen_of(nodes: int = 1, errors: int = 0, hosts: int = 0, **more: Any) -> PollResults:
    return PollResults(
        status=more.pop("status", None) or status_of(nodes),
        rates={"bytes": 2_500_000.0, "new": 12.0, "errors": 0.5, "dropped": 0.1},
        errors=[error_of(f"error:{number}", 100 - number) for number in range(errors)],
        hosts={"hosts": [host_of(f"h{number}.example", 50 - number) for number in range(hosts)], "is_whole": True},
        **more,
    )


def drawn(seen: PollResults, width: int, height: int, *, is_live: bool = True) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, color_system=None, force_terminal=False)
    console.print(screen_of(seen, width, height, is_live=is_live))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_all_is_shown_where_there_is_room() -> None:
    text = "\n".join(drawn(seen_of(nodes=2, errors=3, hosts=4), 120, 40))
    for words in ("crawl test: runs   q ends this", "2.50 MB, 12.0 new URLs, 0.5 errors", "node0", "node1", "outbox"):
        assert words in text
    for words in ("error:2", "a.example 97", "h3.example", "47", "4 of 4 owned", "5 retired"):
        assert words in text
    assert "more)" not in text


@pytest.mark.parametrize("height", [1, 5, 6, 8, 9, 10, 12, 14, 24, 60])
@each("width", [20, 40, 79, 80, 99, 100, 200])
def test_screen_is_no_larger_than_the_terminal(width: int, height: int) -> None:
    """But for the lines about the crawl as a whole, which a terminal cuts itself."""
    for counts in ((1, 0, 0), (0, 5, 9), (3, 1, 1), (40, 40, 40)):
        lines = drawn(seen_of(*counts), width, height)
        assert max(map(len, lines)) <= width
        assert len(lines) <= max(height, HEAD_LINES)


def test_low_terminal_says_how_much_it_leaves_out() -> None:
    """Each table keeps its first rows."""
    lines = drawn(seen_of(nodes=30, errors=30, hosts=30), 100, 24)
    assert [line for line in lines if "more)" in line] == ["(23 more)", "(29 more)", "(29 more)"]
    text = "\n".join(lines)
    assert all(word in text for word in ("node0", "error:0", "h0.example"))


def test_what_is_wrong_is_never_cut_off() -> None:
    """In a narrow terminal it takes several lines."""
    reason = "it is paused; `scrapy frontier resume` lets it continue"
    seen = seen_of(status=status_of(1, (reason,)), trouble="Redis does not answer: connection refused", silent_s=75.0)
    lines = drawn(seen, 30, 40)
    together = " ".join(" ".join(lines).split())
    assert f"standstill {reason}" in together
    assert lines[0].startswith("figures are 75 s old: Redis")
    assert "connection refused" in together


def test_nothing_is_shown_before_anything_was_read() -> None:
    assert drawn(PollResults(trouble="Redis does not answer", silent_s=1.0), 80, 24)[-1] == "nothing was read yet"


def test_rates_count_errors_and_dropped_urls_of_every_reason() -> None:
    outcomes = {"error:dns": 1, "error:timeout": 2, "dropped:forbidden": 4, "status:503": 8, "retried:error:dns": 16}
    assert totals_of(status_of(outcomes=outcomes)) == {"bytes": 9_000_000, "new": 7, "errors": 3, "dropped": 4}
