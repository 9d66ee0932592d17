"""`python -m benchmarks.balance`: UbiCrawler's Figure 1, how far nodes are from perfect balance, from 2 to 100 nodes.

A million sites are hashed to partitions, and these assigned to nodes that have joined one after the other. A table, and
a plot with --svg, have by how much the node that is farthest off deviates from an equal share of the sites, in percent,
beside what the paper reports of its consistent hashing with 100 and with 200 replicas. --capacities 1 2 4 gives the
nodes capacities in turn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mmh3
import numpy as np

from benchmarks.bench_assignment import members_of
from benchmarks.crawl.report import aligned, say
from benchmarks.svg_plot import Axis, Line, svg_of
from bigcrawl.scheduler.crawl.assignment import assign

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

NODES: Final = (*range(2, 11), *range(15, 101, 5))
PAPER: Final = {"paper, 100 replicas": 6.0, "paper, 200 replicas": 4.5}
SHOWN_MAX: Final = 35.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sites", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, nargs="+", default=[256, 1_024, 2_048])
    parser.add_argument("--capacities", type=float, nargs="+", default=[1.0])
    parser.add_argument("--svg", type=Path, help="file for the plot")
    options = parser.parse_args()
    hashes = np.array([mmh3.hash64(f"site{n}.example", signed=False)[0] for n in range(options.sites)], dtype=np.uint64)
    found = {count: deviations(hashes, count, options.capacities) for count in options.partitions}
    heads = ("nodes", *(f"{count:,} partitions" for count in found))
    rows = [[str(nodes), *(f"{found[count][at]:.1f} %" for count in found)] for at, nodes in enumerate(NODES)]
    say(*aligned([heads, *rows]))
    if options.svg:
        lines = [Line(f"{count:,} partitions", [*zip(NODES, found[count], strict=True)]) for count in found]
        lines += [Line(name, [(NODES[0], most), (NODES[-1], most)], is_dashed=True) for name, most in PAPER.items()]
        x = Axis("nodes", 2, 100, (2, 20, 40, 60, 80, 100))
        y = Axis("farthest node from its share of sites, %", 0, SHOWN_MAX, range(0, 36, 5))
        options.svg.write_text(svg_of("Deviation from balance", x, y, lines), "utf-8")


def deviations(hashes: npt.NDArray[np.uint64], partitions: int, cycle: Sequence[float]) -> list[float]:
    """Return the largest deviation in percent for each number of nodes in `NODES`."""
    sites = np.bincount((hashes % np.uint64(partitions)).astype(np.int64), minlength=partitions)
    found, owners = [], [""] * partitions
    for nodes in range(1, NODES[-1] + 1):
        capacities = {f"node{number}": cycle[number % len(cycle)] for number in range(nodes)}
        owners = assign(partitions, members_of(capacities, owners))
        if nodes in NODES:
            total = sum(capacities.values())
            owned = dict.fromkeys(capacities, 0)
            for owner, count in zip(owners, sites.tolist(), strict=True):
                owned[owner] += count
            wanted = {node: len(hashes) * capacity / total for node, capacity in capacities.items()}
            found.append(max(abs(owned[node] / wanted[node] - 1) for node in capacities) * 100)
    return found


if __name__ == "__main__":
    main()
