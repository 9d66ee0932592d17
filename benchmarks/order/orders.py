"""Orders in which a web may be fetched, computed on its graph, from the same seeds as the crawl."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from benchmarks.order.web import LinkedPages, RankArray

HOST_DEPTH: Final = 8  # of UbiCrawler's crawl of .it
THREADS: Final = 32  # hosts that are visited at a time; UbiCrawler gives each host a thread


def omniscient(ranks: RankArray) -> list[int]:
    """Pages by PageRank, the highest first, whether links lead there or not: no order is better."""
    order: list[int] = np.argsort(-ranks, kind="stable").tolist()
    return order


def breadth_first(pages: LinkedPages, seeds: list[int]) -> list[int]:
    """The page that was found first is next."""
    order, seen = list(seeds), set(seeds)
    for page in order:  # grows
        order += (new := [target for target in pages.links(page) if target not in seen])
        seen.update(new)
    return order


def host_by_host(pages: LinkedPages, seeds: list[int]) -> list[int]:
    """Each host is visited breadth-first from where it was met, to a depth of 8, before another one (UbiCrawler §3).

    So many hosts are visited at a time, each a page in turn. Pages below that depth are left out.
    """
    order: list[int] = []
    seen = set(seeds)
    met = deque(seeds)
    visits: deque[deque[tuple[int, int]]] = deque()
    while met or visits:
        while met and len(visits) < THREADS:
            visits.append(deque([(met.popleft(), 0)]))
        visit = visits.popleft()
        page, depth = visit.popleft()
        order.append(page)
        for target in pages.links(page):
            is_local = pages.hosts[target] == pages.hosts[page]
            if target in seen or (is_local and depth >= HOST_DEPTH):
                continue
            seen.add(target)
            if is_local:
                visit.append((target, depth + 1))
            else:
                met.append(target)
        if visit:
            visits.append(visit)
    return order


def depth_first(pages: LinkedPages, seeds: list[int]) -> list[int]:
    """The page that was found last is next, and each is queued when it is found first: Scrapy's own order."""
    order: list[int] = []
    seen, stack = set(seeds), list(seeds)
    while stack:
        page = stack.pop()
        order.append(page)
        stack += (new := [target for target in pages.links(page) if target not in seen])
        seen.update(new)
    return order
