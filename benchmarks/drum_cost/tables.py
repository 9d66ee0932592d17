"""The tables, as rows of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.drum_cost import paper
from benchmarks.drum_cost.beyond import our_alpha, steps
from benchmarks.drum_cost.methods import METHODS
from benchmarks.drum_cost.models import (
    LINKS_PER_PAGE,
    PAPER,
    disk_pages_per_s,
    drum_alpha,
    drum_bound,
    mercator_alpha,
    optimal_disk,
    polybot_alpha,
    table_3_disk,
)
from benchmarks.drum_cost.trial import PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.drum_cost.beyond import PerUrl
    from benchmarks.drum_cost.trial import Trial

    Rows = list[tuple[str, ...]]


def table_2_values(pages: int) -> tuple[float, float, float]:
    """alpha of Mercator-B, PolyBot and DRUM under Table 2's conditions."""
    offered, memory = LINKS_PER_PAGE * pages, paper.TABLE_2_MEMORY
    return (
        mercator_alpha(PAPER, offered, memory),
        polybot_alpha(PAPER, offered, memory),
        drum_alpha(PAPER, offered, memory, paper.TABLE_2_DISK),
    )


def table_3_values(pages: int) -> tuple[float, ...]:
    """alpha of Mercator-B and DRUM at each memory of Table 3."""
    offered = LINKS_PER_PAGE * pages
    disk = table_3_disk(PAPER, offered, paper.TABLE_3_DISK_MIN)
    return tuple(
        alpha
        for memory in paper.TABLE_3_MEMORY
        for alpha in (mercator_alpha(PAPER, offered, memory), drum_alpha(PAPER, offered, memory, disk))
    )


def table_2(per_url: PerUrl) -> Rows:
    """Table 2: each formula's figure, in brackets the printed one; then bigcrawl's, modelled."""
    heads = ("pages", "Mercator-B", "PolyBot", "DRUM", "bigcrawl", "text raw")
    rows = [
        (name, *_beside(printed, table_2_values(pages)), *_ours(per_url, pages, paper.TABLE_2_MEMORY, None))
        for name, pages, printed in zip(paper.PAGE_NAMES, paper.PAGES, paper.TABLE_2, strict=True)
    ]
    return [heads, *rows]


def differences(per_url: PerUrl) -> Rows:
    """alpha under Table 2's conditions, from the paper's DRUM to bigcrawl's, one difference after another."""
    found = [steps(per_url, LINKS_PER_PAGE * pages, paper.TABLE_2_MEMORY, paper.TABLE_2_DISK) for pages in paper.PAGES]
    return [("and then", *paper.PAGE_NAMES), *((name, *(_figure(each[name]) for each in found)) for name in found[0])]


def table_3(per_url: PerUrl) -> Rows:
    """Table 3, as `table_2`, without the columns for text that does not compress."""
    heads = ["pages"]
    for memory in paper.TABLE_3_MEMORY:
        heads += [f"Mercator-B {memory / 1e9:.0f} GB", "DRUM", "bigcrawl"]
    rows: Rows = [tuple(heads)]
    for name, pages, printed in zip(paper.PAGE_NAMES, paper.PAGES, paper.TABLE_3, strict=True):
        cells = _beside(printed, table_3_values(pages))
        disk = table_3_disk(PAPER, LINKS_PER_PAGE * pages, paper.TABLE_3_DISK_MIN)
        ours = [_ours(per_url, pages, memory, disk)[0] for memory in paper.TABLE_3_MEMORY]
        rows.append((name, *cells[:2], ours[0], *cells[2:], ours[1]))
    return rows


def theorem_3(per_url: PerUrl) -> Rows:
    """Pages/s at 8T pages and 8 GB of memory, on the paper's disk."""
    pages, memory = paper.PAGES[-1], paper.TABLE_3_MEMORY[-1]
    offered = LINKS_PER_PAGE * pages
    disk = table_3_disk(PAPER, offered, paper.TABLE_3_DISK_MIN)
    alphas = {
        "Mercator-B": mercator_alpha(PAPER, offered, memory),
        "PolyBot": polybot_alpha(PAPER, offered, memory),
        "DRUM": drum_alpha(PAPER, offered, memory, disk),
        "bigcrawl": our_alpha(per_url, offered, memory, disk),
    }
    rows: Rows = [("method", "alpha", "pages/s", "paper")]
    for name, alpha in alphas.items():
        speed = disk_pages_per_s(PAPER, alpha, paper.DISK_BYTES_PER_S)
        rows.append((name, _figure(alpha), _figure(speed), paper.PAGES_PER_S.get(name, "")))
    return rows


def remarks() -> list[str]:
    """The figures of the text around the tables."""
    tera = [optimal_disk(PAPER, memory) / 1e12 for memory in (10**9, 2 * 10**9)]
    pages = paper.PAGES[-1]
    offered, memory = LINKS_PER_PAGE * pages, paper.TABLE_3_MEMORY[-1]
    polybot, mercator = polybot_alpha(PAPER, offered, memory), mercator_alpha(PAPER, offered, memory)
    return [
        f"bound 2 + p + 2H/b: {drum_bound(PAPER):.4f} (paper {paper.BOUND})",
        f"optimal disk at 1 and 2 GB: {tera[0]:.2f} and {tera[1]:.1f} TB (paper {' and '.join(paper.OPTIMAL_DISK_TB)})",
        f"PolyBot to Mercator-B at 8T pages: {polybot / mercator:.2f} (paper {paper.POLYBOT_TO_MERCATOR})",
    ]


def measured(trials: Sequence[Trial]) -> Rows:
    """A row for each number of URLs, a column for each method: alpha measured, in brackets the formula's."""
    names = [name for name in METHODS if any(trial.method == name for trial in trials)]
    rows: Rows = [("URLs offered", *(METHODS[name].title for name in names))]
    for count in sorted({trial.offered for trial in trials}):
        found = {trial.method: trial for trial in trials if trial.offered == count}
        cells = [f"{found[name].alpha:.3f} ({found[name].model:.3f})" if name in found else "-" for name in names]
        rows.append((f"{count:,}", *cells))
    return rows


def by_part(trials: Sequence[Trial]) -> Rows:
    """Where the bytes of each run go, written and read apart."""
    rows: Rows = [("URLs, method", *PARTS, "alpha", "merges", "written", "read")]
    for trial in trials:
        written = sum(moved.written for moved in trial.moved.values())
        both = sum(moved.both for moved in trial.moved.values())
        rows.append(
            (
                f"{trial.offered:,} {METHODS[trial.method].title}",
                *(f"{trial.share(part):.4f}" for part in PARTS),
                f"{trial.alpha:.4f}",
                str(trial.merges),
                f"{trial.alpha * written / both:.4f}",
                f"{trial.alpha * (both - written) / both:.4f}",
            )
        )
    return rows


def _beside(printed: Sequence[str], values: Sequence[float]) -> list[str]:
    cells = []
    for figure, value in zip(printed, values, strict=True):
        mark = "" if paper.agrees(figure, value) else " !"
        cells.append(f"{_figure(value)} ({figure}){mark}")
    return cells


def _ours(per_url: PerUrl, pages: int, memory: int, disk: float | None) -> tuple[str, str]:
    disk = paper.TABLE_2_DISK if disk is None else disk
    offered = LINKS_PER_PAGE * pages
    return tuple(_figure(our_alpha(each, offered, memory, disk)) for each in (per_url, per_url.raw()))  # type: ignore[return-value]


def _figure(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
