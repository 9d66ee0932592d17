"""The order benchmark: PageRank against a textbook's, each order on a small web, and what a missed promise is."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.order.__main__ import PROMISED, curve_of, faults
from benchmarks.order.orders import breadth_first, depth_first, host_by_host, omniscient
from benchmarks.order.web import SHAPES, LinkedPages, page_ranks, pages_of

# Two hosts: pages 0 to 3 and 4 to 5.
LINKS = [[1, 2, 4], [3], [0], [], [5, 2], [0]]


def linked(links: list[list[int]]) -> LinkedPages:
    first = np.cumsum([0, *map(len, links)])
    targets = np.array([target for of_page in links for target in of_page], dtype=np.int64)
    return LinkedPages(
        [f"http://a.example/{n}" for n in range(len(links))], np.array([0] * 4 + [1] * 2), first, targets
    )


def test_ranks_solve_page_ranks_equation() -> None:
    """As numpy's solver says, with a page without links; they sum up to 1."""
    count = len(LINKS)
    matrix = np.zeros((count, count))
    for page, targets in enumerate(LINKS):
        for target in targets or range(count):
            matrix[target, page] += 1 / (len(targets) or count)
    expected = np.linalg.solve(np.eye(count) - 0.85 * matrix, np.full(count, 0.15 / count))
    assert page_ranks(linked(LINKS)) == pytest.approx(expected, abs=1e-9)


def test_each_order_is_what_it_is_called() -> None:
    """From page 0: by distance, host after host, the last found first; omniscient needs no links."""
    pages = linked(LINKS)
    assert breadth_first(pages, [0]) == [0, 1, 2, 4, 3, 5]
    assert host_by_host(pages, [0])[:2] == [0, 1]
    assert sorted(host_by_host(pages, [0])) == [0, 1, 2, 3, 4, 5]
    assert depth_first(pages, [0]) == [0, 4, 5, 2, 1, 3]
    assert omniscient(np.array([0.1, 0.3, 0.3, 0.2])) == [1, 2, 3, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_web_has_its_pages_and_links_between_them(shape: str) -> None:
    """All pages of a host are reached from its first one; no page links to itself, or twice."""
    pages = pages_of(7, 20, 300, shape)
    assert len(pages) == len(pages.urls) == len(set(pages.urls)) >= 300
    for page in range(len(pages)):
        links = pages.links(page)
        assert page not in links
        assert len(set(links)) == len(links)
    own = [page for page in breadth_first(pages, [0]) if pages.hosts[page] == 0]
    assert len(own) == (pages.hosts == 0).sum()


def test_a_missed_promise_is_told() -> None:
    """By both orders, at each mark; equal is kept."""
    curves = {name: [0.0, 1.0 - at / 10] for at, name in enumerate(PROMISED)}
    assert faults(curves, [1]) == []
    curves["opic"], curves["breadth-first"] = curves["breadth-first"], curves["opic"]
    assert faults(curves, [1]) == ["MISSED: breadth-first has 0.9000 after 1 pages, opic 0.8000"]
    assert curve_of([1, 0], np.array([0.25, 0.75]), 3) == [0.0, 0.75, 1.0, 1.0]
