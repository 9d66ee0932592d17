"""Prints the tables; see the package."""

from __future__ import annotations

import argparse
import platform
import tempfile
from pathlib import Path

from benchmarks.beast import say
from benchmarks.beast.crawl import Cost, Naive, WithPartition, crawl
from benchmarks.beast.scale import run_scale
from benchmarks.beast.theorems import beast_bound, beast_bytes, naive_bytes
from benchmarks.beast.web import Web

PLDS = 200
BUDGET = 10
LINKS = 6.5  # IRLbot's L
SEEDS = 400
# Where BEAST is about to read again what is over budget: from one to the next, one re-read is counted.
ROWS = (8_000, 24_000, 56_000, 120_000, 248_000, 504_000)
NAIVE_PAGES_MAX = 56_000  # it costs some twenty times as much by then


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beast", description=__doc__)
    parser.add_argument("--pages", type=float, default=248_000, help="of the simulated crawl")
    parser.add_argument("--scale", action="store_true", help="one PLD with nearly all there is, beside 100,000 others")
    parser.add_argument("--urls", type=float, default=1e7, help="of that PLD")
    parser.add_argument("--plds", type=float, default=1e5, help="beside it")
    options = parser.parse_args()
    say(f"{platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="bigcrawl-beast-") as directory:
        if options.scale:
            run_scale(Path(directory), int(options.urls), int(options.plds))
        else:
            run_methods(Path(directory), int(options.pages))


def run_methods(directory: Path, pages: int) -> None:
    """Print the first table."""
    rows = [n for n in ROWS if n < pages] + [pages]
    beast = list(crawl(WithPartition(directory / "p", BUDGET), Web(PLDS, LINKS), SEEDS, rows))
    naive_rows = [n for n in rows if n <= NAIVE_PAGES_MAX]
    naive = list(crawl(Naive(directory / "naive", BUDGET), Web(PLDS, LINKS), SEEDS, naive_rows))
    url_bytes = beast[0].url_bytes
    say(f"V = {PLDS} PLDs, B = {BUDGET}, L = {LINKS}, b = {url_bytes:.1f} bytes stored; bytes a page, between rows")
    say(f"{'':10} | {'BEAST':^38} | {'naive':^32}")
    columns = f"{'re-read':>10} {'all moved':>10}"
    say(f"{'pages':>10} | {columns} {'theorem 5':>10}   bound | {columns} {'theorem 4':>10}")
    bound = beast_bound(LINKS, url_bytes)
    for at, cost in enumerate(beast):
        theorem = beast_bytes(cost.pages, BUDGET, PLDS, LINKS, url_bytes)
        line = f"{cost.pages:10,} | {cost.reread:10,.0f} {cost.moved:10,.0f} {theorem:10,.0f} {bound:7,.0f}"
        say(f"{line} | {naive_part(naive[at] if at < len(naive) else None, cost.pages, url_bytes)}")
    worst = max(cost.moved for cost in beast)
    say(f"BEAST at most {worst / bound:.2f} of the bound 2 b (2 L - 1)")


def naive_part(cost: Cost | None, pages: int, url_bytes: float) -> str:
    """The naive method's columns; where it was not run, the theorem alone."""
    theorem = f"{naive_bytes(pages, BUDGET, PLDS, LINKS, url_bytes):10,.0f}"
    if cost is None:
        return f"{'':10} {'':10} {theorem}"
    return f"{cost.reread:10,.0f} {cost.moved:10,.0f} {theorem}"


if __name__ == "__main__":
    main()
