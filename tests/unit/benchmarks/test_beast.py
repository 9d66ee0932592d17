from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.beast.crawl import ROOM, Naive, WithPartition, crawl
from benchmarks.beast.scale import Scale
from benchmarks.beast.theorems import alpha, beast_bound, beast_bytes, naive_bytes
from benchmarks.beast.web import Web

if TYPE_CHECKING:
    from pathlib import Path

# IRLbot §6.2: V, E[B], L, S pages/s, b.
PLDS, BUDGET, LINKS, PAGES_S, URL_BYTES = 33_000_000, 11, 6.5, 3100, 110


@pytest.mark.parametrize(("pages", "mb_s", "digit"), [(1e8, 3.8, 0.1), (8e9, 83, 1), (80e9, 826, 1)])
def test_theorem_4_gives_the_papers_figures(pages: float, mb_s: float, digit: float) -> None:
    """The naive method's disk speed at three sizes of a crawl, to the paper's last digit."""
    speed = PAGES_S * naive_bytes(pages, BUDGET, PLDS, LINKS, URL_BYTES) / 1e6
    assert speed == pytest.approx(mb_s, abs=digit)


def test_theorem_5_stays_below_the_papers_bound() -> None:
    """BEAST needs 8.2 MB/s at most, whatever the size of the crawl."""
    bound = PAGES_S * beast_bound(LINKS, URL_BYTES) / 1e6
    assert bound == pytest.approx(8.2, abs=0.05)
    speeds = [PAGES_S * beast_bytes(10.0**n, BUDGET, PLDS, LINKS, URL_BYTES) / 1e6 for n in range(6, 15)]
    assert speeds == sorted(speeds)
    assert speeds[-1] <= bound
    assert alpha(1, BUDGET, PLDS) == 1


def test_the_naive_method_moves_more_with_every_pass_and_beast_does_not(tmp_path: Path) -> None:
    """In a small crawl already, what is re-read a page grows with the one and not with the other."""
    rows = (500, 1500, 3500)
    plds, budget, links = 10, 10, 3.0
    naive = list(crawl(Naive(tmp_path / "n", budget), Web(plds, links), 100, rows))
    beast = list(crawl(WithPartition(tmp_path / "p", budget), Web(plds, links), 100, rows))
    assert all(cost.pages >= goal for cost, goal in zip(beast, rows, strict=True))
    assert all(cost.pages < goal + ROOM for cost, goal in zip(naive, rows, strict=True))
    assert naive[2].reread > 2 * naive[1].reread > 0
    assert beast[2].moved < naive[2].moved / 4


def test_the_scale_run_admits_every_ordinary_url(tmp_path: Path) -> None:
    """What is offered by the others comes out, and soon, and the state opens again."""
    scale = Scale(tmp_path / "p", 20_000, 100)
    scale.load()
    assert scale.missing == 0
    assert len(scale.waits) == 300
    waiting = scale.partition.state.waiting
    scale.reopen()
    assert scale.partition.state.waiting == waiting > 10_000
    assert scale.admitted["x"] + waiting == 20_000
