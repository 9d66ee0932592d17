"""`python -m benchmarks.fetches`: UbiCrawler's Figure 3 (b), the work of a fetch by fetches at a time, from 1 to 1,024.

As `make bench-nodes`: the nodes and the Redis are real, a fetch is a wait of 200 ms, and a page is a list of 60 links.
A table, and a plot with --svg, have the pages a second of all nodes, divided by nodes and fetches at a time. A fetch
that never waits for anything else does 5 pages a second. Nodes share the cores of this machine: the table also has how
many cores they used together. Takes two minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.crawl.report import aligned, say
from benchmarks.nodes.measuring import measured
from benchmarks.nodes.node import FETCH_S
from benchmarks.nodes.servers import started
from benchmarks.svg_plot import Axis, Line, svg_of

_HEADS: Final = ("nodes", "fetches a node", "pages/s", "pages/s and fetch", "of possible", "cores of nodes")
Row = tuple[int, int, float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1])
    parser.add_argument("--fetches", type=int, nargs="+", default=[1, 4, 16, 64, 256, 1_024])
    parser.add_argument("--seconds", type=float, default=4.0, help="that are measured")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before that")
    parser.add_argument("--svg", type=Path, help="file for the plot")
    options = parser.parse_args()
    rows = [
        _row(nodes, fetches, options.warm_up, options.seconds) for nodes in options.nodes for fetches in options.fetches
    ]
    say(*aligned([_HEADS, *map(_texts, rows)]))
    if options.svg:
        options.svg.write_text(_plot(rows), "utf-8")


def _row(nodes: int, fetches: int, warm_up_s: float, seconds: float) -> Row:
    settings = {"CONCURRENT_REQUESTS": fetches}
    with tempfile.TemporaryDirectory() as directory, started(0) as servers:
        before, after, _ = measured(nodes, Path(directory), servers, warm_up_s, seconds, settings)
    found = after.since(before)
    return nodes, fetches, found.pages / found.at_s, found.node_s / found.at_s


def _texts(row: Row) -> tuple[str, ...]:
    nodes, fetches, rate, cores = row
    work = rate / nodes / fetches
    return (str(nodes), f"{fetches:,}", f"{rate:,.0f}", f"{work:.2f}", f"{work * FETCH_S:.0%}", f"{cores:.2f}")


def _plot(rows: list[Row]) -> str:
    numbers = sorted({nodes for nodes, *_ in rows})
    lines = [
        Line(f"{one} node{'s' * (one > 1)}", [(f, rate / nodes / f) for nodes, f, rate, _ in rows if nodes == one])
        for one in numbers
    ]
    fetches = sorted({fetches for _, fetches, *_ in rows})
    lines.append(Line("possible", [(fetches[0], 1 / FETCH_S), (fetches[-1], 1 / FETCH_S)], is_dashed=True))
    x = Axis("fetches at a time of a node", fetches[0], fetches[-1], fetches, is_log=True)
    y = Axis("pages a second and fetch", 0, 6, range(7))
    return svg_of("Work of a fetch", x, y, lines)


if __name__ == "__main__":
    main()
