"""The tables, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.crawl.figures import Spread, spread
from benchmarks.crawl.sides import SIDES
from benchmarks.crawl.stages import ORDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.crawl.figures import Measurement
    from benchmarks.crawl.stages import StageCosts

_HEADS = ("side", "pages/s", "CPU ms/page", "crawler", "Redis", "origin", "RSS MB", "pages", "robots.txt", "others")


def say(*lines: str) -> None:
    """Print lines at once, also into a file that somebody watches."""
    print(*lines, sep="\n", flush=True)  # noqa: T201 - a command's output is its answer


def side_table(runs: Mapping[str, Sequence[Measurement]]) -> str:
    """One line a side: medians, in brackets the least and the greatest; then which sides were disturbed."""
    rows = [_HEADS, *(_row(name, found) for name, found in runs.items())]
    lines = aligned(rows)
    for name, found in runs.items():
        disturbed = sum(bool(run.trouble) for run in found)
        if disturbed:
            rest = "the others count" if disturbed < len(found) else "do not quote its pages/s"
            lines.append(f"! {SIDES[name].title}: {disturbed} of {len(found)} rounds were disturbed; {rest}")
    return "\n".join(lines)


def _row(name: str, runs: Sequence[Measurement]) -> tuple[str, ...]:
    def median(figure: str, digits: int) -> str:
        return f"{spread(runs, lambda run: getattr(run, figure)).median:.{digits}f}"

    return (
        SIDES[name].title,
        _with_bounds(spread(runs, lambda run: run.pages_per_s), 0),
        _with_bounds(spread(runs, lambda run: run.cpu_ms), 2),
        median("crawler_ms", 2),
        median("redis_ms", 2),
        median("origin_ms", 2),
        f"{spread(runs, lambda run: run.rss_bytes / 1e6).median:.0f}",
        median("pages", 0),
        median("robots", 0),
        median("others", 0),
    )


def _with_bounds(found: Spread, digits: int) -> str:
    return f"{found.median:.{digits}f} ({found.low:.{digits}f}-{found.high:.{digits}f})"


def ratio_lines(runs: Mapping[str, Sequence[Measurement]]) -> list[str]:
    """How bigcrawl stands to each other side, by pages/s and by CPU a page."""
    ours = runs.get("bigcrawl")
    lines = []
    for name, found in runs.items() if ours else ():
        if name != "bigcrawl" and ours:
            speed = _ratio(spread(ours, lambda run: run.pages_per_s), spread(found, lambda run: run.pages_per_s))
            cpu = _ratio(spread(found, lambda run: run.cpu_ms), spread(ours, lambda run: run.cpu_ms))
            lines.append(
                f"bigcrawl to {SIDES[name].title}: {speed:.1f} times the pages/s, 1/{cpu:.1f} of the CPU a page"
            )
    return lines


def _ratio(over: Spread, under: Spread) -> float:
    return over.median / under.median


def stage_table(costs: StageCosts, cpu_ms: float | None) -> str:
    """CPU by stage and kind of thread; scaled to what a run without the profiler uses, when that is known."""
    scale = cpu_ms * 1000 / costs.total_us if cpu_ms else 1.0
    rows: list[tuple[str, ...]] = [("CPU us a page", "main thread", "others", "share")]
    for name in ORDER:
        main, others = costs.main.get(name, 0.0), costs.others.get(name, 0.0)
        if main or others:
            rows.append(
                (name, f"{main * scale:.0f}", f"{others * scale:.0f}", f"{(main + others) / costs.total_us:.0%}")
            )
    sums = (sum(costs.main.values()), sum(costs.others.values()))
    rows.append(("all", *(f"{us * scale:.0f}" for us in sums), ""))
    note = f"{costs.pages} pages sampled at {costs.total_us:.0f} us each"
    return "\n".join([*aligned(rows), note + (f", scaled to {cpu_ms:.2f} ms" if cpu_ms else "")])


def function_lines(costs: StageCosts) -> list[str]:
    """The functions with the most CPU of their own, C functions they call included."""
    return [f"{us:8.1f} us/page  {name}" for name, us in costs.functions]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines
