"""`python -m benchmarks.order`: how soon a crawl fetches the pages that matter.

The exact PageRank of a simulated web of 10^5 pages, on 4,000 hosts of all sizes, is known. Half of it is crawled from
ten hosts' first pages through the real frontier, with the prioritizer `opic` and without one. The other orders are
computed on the graph: by PageRank itself, breadth-first, host by host to a depth of 8, depth-first. Told is the sum of
the ranks of what was fetched, when a quarter and half of the pages are. Promised is the order of UbiCrawler's Figure 2,
with `opic` between the omniscient and the breadth-first one; the exit status is 1 if it was missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.crawl.report import aligned, say
from benchmarks.order.crawl import crawled
from benchmarks.order.orders import HOST_DEPTH, THREADS, breadth_first, depth_first, host_by_host, omniscient
from benchmarks.order.web import SHAPES, page_ranks, pages_of
from bigcrawl_report.document import Document
from bigcrawl_report.html import html_of
from bigcrawl_report.tables import Column, Plot, Section, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.order.web import LinkedPages, RankArray

SEEDS: Final = 10
MARKS: Final = (0.1, 0.25, 0.5)  # of all pages; the last is how far the crawls go
JUDGED: Final = (0.25, 0.5)
OURS: Final = "opic"
PROMISED: Final = ("omniscient", OURS, "breadth-first", "host by host", "depth-first")
PLAIN: Final = "no prioritizer"
WHOLE: Final = "whole hosts"

Curve = list[float]
"""The sum of ranks when 0, 1, 2 ... pages are fetched."""


def main() -> int:
    """Make the web, fetch it in each order, print a table, write the page."""
    options = _parser().parse_args()
    pages = pages_of(options.seed, options.hosts, options.pages, options.shape)
    ranks = page_ranks(pages)
    homes = np.flatnonzero(np.diff(pages.hosts, prepend=-1)).tolist()
    seeds = random.Random(options.seed).sample(homes, SEEDS)
    count = round(MARKS[-1] * len(pages))
    say(f"{len(pages):,} pages of {options.hosts:,} hosts, {len(pages.targets):,} links; {SEEDS} seeds")
    curves = {name: curve_of(order, ranks, count) for name, order in _computed(pages, ranks, seeds).items()}
    with tempfile.TemporaryDirectory(prefix="bigcrawl-order-") as directory:
        for name, own in (
            (PLAIN, {}),
            (OURS, {"BIGCRAWL_PRIORITIZER": OURS}),
            (WHOLE, {"BIGCRAWL_WHOLE_HOSTS": THREADS, "BIGCRAWL_WHOLE_HOST_DEPTH": HOST_DEPTH}),
        ):
            settings = {
                **own,
                "BIGCRAWL_PRIORITY_BIAS": options.bias,
                "BIGCRAWL_PARTITIONS": options.partitions,
                "BIGCRAWL_HOST_HOT_URLS": options.host_urls,
            }
            found = crawled(pages, seeds, count, Path(directory) / name, settings)
            curves[name] = curve_of(found.order, ranks, count)
            say(f"{name}: {found.node_us:.0f} us a page in the node, {found.redis_us:.0f} in Redis")
    rows = [[round(curve[round(mark * len(pages))], 4) for mark in MARKS] for curve in curves.values()]
    say(*aligned([["", *(f"{mark:.0%}" for mark in MARKS)], *_cells(list(curves), rows)]))
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(_page_of(curves, count), "utf-8")
    missed = faults(curves, [round(mark * len(pages)) for mark in JUDGED])
    say(*missed, f"curves: {options.to}")
    return 1 if missed else 0


def curve_of(order: list[int], ranks: RankArray, count: int) -> Curve:
    """Return the sum of the ranks of what is fetched, after each of `count` pages; flat behind the end of the order."""
    sums = np.cumsum(ranks[order[:count]])
    curve: Curve = np.pad(np.concatenate(([0.0], sums)), (0, count - len(sums)), mode="edge").tolist()
    return curve


def faults(curves: dict[str, Curve], marks: list[int]) -> list[str]:
    """Return a line for each promise that is missed: one order before the other when so many pages are fetched."""
    return [
        f"MISSED: {worse} has {curves[worse][mark]:.4f} after {mark:,} pages, {better} {curves[better][mark]:.4f}"
        for mark in marks
        for better, worse in pairwise(PROMISED)
        if curves[better][mark] < curves[worse][mark]
    ]


def _computed(pages: LinkedPages, ranks: RankArray, seeds: list[int]) -> dict[str, list[int]]:
    return {
        "omniscient": omniscient(ranks),
        "breadth-first": breadth_first(pages, seeds),
        "host by host": host_by_host(pages, seeds),
        "depth-first": depth_first(pages, seeds),
    }


def _cells(names: list[str], rows: list[list[float]]) -> list[list[str]]:
    return [[name, *(f"{value:.3f}" for value in row)] for name, row in zip(names, rows, strict=True)]


def _page_of(curves: dict[str, Curve], count: int) -> str:
    """Return the page with the curves, in the style of a crawl's report."""
    marks = sorted({round(at * count / 200) for at in range(201)})
    lines: dict[str, Sequence[float | None]] = {
        name: [round(curve[mark], 4) for mark in marks] for name, curve in curves.items()
    }
    plot = Plot(
        "ranks",
        "Cumulative PageRank",
        marks,
        lines,
        x_label="pages fetched",
        y_label="share of all ranks",
        is_time=False,
    )
    columns = (Column("fetched"), *(Column(name, "share") for name in curves))
    rows = [(marks[at], *(line[at] for line in lines.values())) for at in range(20, len(marks), 20)]
    table = Table("ranks", "Share of all ranks that is fetched", columns, rows)
    about = "One simulated web, fetched in several orders from the same seeds (UbiCrawler §6.2, Figure 2)."
    return html_of(Document("order", time.time(), False, [Section("order", "Order", about, [table], [plot])]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, default=4_000, help="default 4,000")
    add("--pages", type=int, default=100_000, help="of all hosts together; default 100,000")
    add("--shape", choices=SHAPES, default=SHAPES[0], help="of the links within a host; default trees")
    add("--bias", type=int, default=2, help="BIGCRAWL_PRIORITY_BIAS; default 2")
    add("--partitions", type=int, default=8, help="BIGCRAWL_PARTITIONS; default 8")
    add("--host-urls", type=int, default=200, help="BIGCRAWL_HOST_HOT_URLS; default 200; more are parked")
    add("--seed", type=int, default=7, help="of the web; default 7")
    add("--to", type=Path, default=Path("build/order.html"), help="the page; default build/order.html")
    return parser


if __name__ == "__main__":
    sys.exit(main())
