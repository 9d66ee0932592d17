"""The tables, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.spam.run import SIDES
from benchmarks.spam.timeline import SHARES, ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.spam.run import Run
    from benchmarks.spam.timeline import Timeline

_NEVER: Final = "-"
_CURVE_LINES: Final = 24
_ACCOUNT_LINES: Final = 10


def say(*lines: str) -> None:
    """Print lines at once, also into a file that somebody watches."""
    print(*lines, sep="\n", flush=True)  # noqa: T201 - a command's output is its answer


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return ["  ".join(row).rstrip() for row in cells]


def times_table(runs: Mapping[str, Run]) -> list[str]:
    """How long each share of the legitimate pages took, and how many times as long as in the first run."""
    return _shares_table("legitimate pages", runs, {name: run.timeline for name, run in runs.items()})


def homes_table(runs: Mapping[str, Run]) -> list[str]:
    """The same for the pages of home directories; empty for a web without any."""
    homes = {name: run.homes for name, run in runs.items() if run.homes}
    return _shares_table("pages of home directories", runs, homes) if homes else []


def _shares_table(what: str, runs: Mapping[str, Run], timelines: Mapping[str, Timeline]) -> list[str]:
    heads = tuple(f"{share:.0%}" for share in SHARES)
    rows = [("", *heads, "seconds", "legit", "of", "ended because")]
    fetches = [("", *heads)]
    baseline = next(iter(timelines.values()))
    for name, timeline in timelines.items():
        times = [_time(timeline.reached_s[share], baseline.reached_s[share]) for share in SHARES]
        counts = (f"{timeline.seconds:.0f}", f"{timeline.legit:,}", f"{timeline.reachable:,}")
        rows.append((SIDES[name].title, *times, *counts, runs[name].ended))
        until, before = timeline.fetches_until, baseline.fetches_until
        fetches.append((SIDES[name].title, *(_count(until[share], before[share]) for share in SHARES)))
    return [
        f"seconds until a share of the {what} was fetched (times the baseline's)",
        *aligned(rows),
        "",
        "fetches of all kinds until then (times the baseline's)",
        *aligned(fetches),
    ]


def spam_table(runs: Mapping[str, Run]) -> list[str]:
    """What was spent on spam, and how much of it there was."""
    heads = ("", "pages", "robots.txt", "of all fetches", *(f"until {share:.0%}" for share in SHARES), "PLDs")
    rows: list[Sequence[str]] = [(*heads, "most of one", "of URLs discovered")]
    for name, run in runs.items():
        timeline, found = run.timeline, run.discovered
        fetched = timeline.legit + timeline.spam + timeline.robots_legit + timeline.robots_spam
        rows.append(
            (
                SIDES[name].title,
                f"{timeline.spam:,}",
                f"{timeline.robots_spam:,}",
                f"{(timeline.spam + timeline.robots_spam) / fetched:.1%}",
                *(_NEVER if until is None else f"{until:,}" for until in timeline.spam_until.values()),
                f"{len(timeline.spam_of):,}",
                f"{max(timeline.spam_of.values(), default=0):,}",
                f"{found.spam_share:.1%} of {found.legit + found.spam:,}",
            )
        )
    even = max(runs.values(), key=lambda run: run.even_spam[1.0]).even_spam
    told = ", ".join(f"{spam:,} until {share:.0%}" for share, spam in even.items())
    return ["spam", *aligned(rows), f"if every PLD were given as many URLs, and all were known at once: {told}"]


def load_table(runs: Mapping[str, Run]) -> list[str]:
    """URLs in memory: how many at most, and how fast they entered and left, after the first quarter of the run."""
    rows: list[Sequence[str]] = [
        ("", "hot at most", "at the end", "entered/s", "left/s", "on disk at the end", "Redis MB")
    ]
    for name, run in runs.items():
        if len(run.loads) < 2:
            continue
        first, last = run.loads[len(run.loads) // 4], run.loads[-1]
        seconds = max(last.at_s - first.at_s, 1e-3)
        rows.append(
            (
                SIDES[name].title,
                f"{max(load.hot for load in run.loads):,}",
                f"{last.hot:,}",
                f"{(last.entered - first.entered) / seconds:.1f}",
                f"{(last.left - first.left) / seconds:.1f}",
                f"{last.waiting:,}",
                f"{max(load.used_bytes for load in run.loads) / 1e6:.1f}",
            )
        )
    return ["URLs in memory, as Redis counts them", *aligned(rows)]


def account_table(runs: Mapping[str, Run]) -> list[str]:
    """What the farms that got most were allowed, and what they got; then how many got more."""
    heads = ("", "PLD", "in-degree", "budget", "turns", "with quanta", "allowed", "fetched")
    rows: list[Sequence[str]] = [heads]
    verdicts = []
    for name, run in runs.items():
        accounts = run.accounts
        for account in accounts[:_ACCOUNT_LINES]:
            _, _, *numbers = account
            *before, fetched = (f"{number:,}" for number in numbers)
            rows.append((name, account.pld, *before, f"{account.allowed:,}", fetched))
        over = sum(account.fetched > account.allowed for account in accounts)
        if accounts:
            verdicts.append(f"{name}: {over} of {len(accounts)} farms got more than their budgets allowed")
    return ["spam against its budgets (budget x turns x quantum)", *aligned(rows), *verdicts] if verdicts else []


def curve_table(runs: Mapping[str, Run]) -> list[str]:
    """Legitimate pages and spam fetched over time, side beside side."""
    longest = max((run.timeline.curve for run in runs.values()), key=len)
    step = max(1, len(longest) // _CURVE_LINES)
    rows: list[Sequence[str]] = [("s", *(f"{name}: legit spam" for name in runs))]
    for place in range(step - 1, len(longest), step):
        cells = []
        for run in runs.values():
            curve = run.timeline.curve
            point = curve[min(place, len(curve) - 1)]
            cells.append(f"{point.legit:,} {point.spam:,}" if place < len(curve) else "")
        rows.append((f"{longest[place].at_s:.0f}", *cells))
    return ["pages fetched over time", *aligned(rows)]


def _time(mine_s: float | None, clean_s: float | None) -> str:
    if mine_s is None:
        return _NEVER
    return f"{mine_s:.1f}" + _times(mine_s, clean_s)


def _count(mine: int | None, clean: int | None) -> str:
    return _NEVER if mine is None else f"{mine:,}{_times(mine, clean)}"


def _times(mine: float, clean: float | None) -> str:
    found = ratio(mine, clean)
    return "" if found is None else f" ({found:.2f})"
