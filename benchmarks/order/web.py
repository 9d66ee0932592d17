"""The web of the benchmark: its links as arrays, and the exact PageRank of its pages.

Sizes of hosts and links between hosts are those of `bigcrawl_simweb`, heavy-tailed. The links within a host have one of
two shapes:

    trees   a host is a tree: a page links to its host's first page, to its parent, its children and both neighbours,
            and every fifth link leads to another host; so most links are short, as on real sites
    even    `bigcrawl_simweb`'s own: any page of a host links to any other, 23 links a page to other pages of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.features.votes.ranks import DAMPING
from bigcrawl_simweb.basics.features import PLAIN
from bigcrawl_simweb.basics.resources import Kind, Resource
from bigcrawl_simweb.model.graph import Graph
from bigcrawl_simweb.model.population import Population

if TYPE_CHECKING:
    import numpy.typing as npt

    NumberArray = npt.NDArray[np.int64]
    RankArray = npt.NDArray[Any]

SHAPES: Final = ("trees", "even")

_CHILDREN: Final = (2, 20)  # of a page: as many for all pages of a host
_AWAY: Final = 4  # links within the host for each link to another one

_ERROR_MAX: Final = 1e-10  # of all ranks together
_ROUNDS_MAX: Final = 1_000


@dataclass(frozen=True)
class LinkedPages:
    """Pages 0 to n - 1 and the links between them, each once.

    Attributes:
        urls: the URL of each page.
        hosts: int64, shape (n,): the number of each page's host; a host's pages follow each other, its first one first.
        first: int64, shape (n + 1,): where the links of each page begin among the targets.
        targets: int64: the pages that they lead to, in page order.
    """

    urls: list[str]
    hosts: NumberArray
    first: NumberArray
    targets: NumberArray

    def __len__(self) -> int:
        return len(self.urls)

    def links(self, page: int) -> list[int]:
        """Return what a page links to, in page order, without itself and repetitions."""
        found: list[int] = self.targets[self.first[page] : self.first[page + 1]].tolist()
        return found


def pages_of(seed: int, hosts: int, pages: int, shape: str = SHAPES[0]) -> LinkedPages:
    """Return a web of so many hosts and pages, of one of `SHAPES`. Cost: 0.05 to 0.2 ms a page."""
    population = Population(seed, hosts, pages)
    sizes = [population.pages_of(host) for host in range(hosts)]
    begins = [0, *accumulate(sizes)]
    links = _links_in_trees(seed, population, sizes) if shape == "trees" else _even_links(seed, population)
    urls, targets, first = [], [], [0]
    for host, size in enumerate(sizes):
        name = f"www{host}.site{population.pld_of(host)}.com"
        for number in range(size):
            urls.append(f"http://{name}/page-{number}.html")
            found = [begins[other] + linked for other, linked in links(host, number)]
            targets += [page for page in dict.fromkeys(found) if page != begins[host] + number]
            first.append(len(targets))
    return LinkedPages(urls, np.repeat(np.arange(hosts), sizes), np.array(first), np.array(targets))


Links = Callable[[int, int], Iterable[tuple[int, int]]]
"""Returns host and number of what a page links to, given its own."""


def _even_links(seed: int, population: Population) -> Links:
    graph = Graph(seed, population, PLAIN)

    def links(host: int, number: int) -> Iterable[tuple[int, int]]:
        linked = graph.links(Resource(host, Kind.PAGE, number))
        return [(one.host, one.number) for one in linked if one.kind is Kind.PAGE]

    return links


def _links_in_trees(seed: int, population: Population, sizes: list[int]) -> Links:
    def links(host: int, number: int) -> Iterable[tuple[int, int]]:
        breadth, draw = Random(f"{seed}/{host}").randint(*_CHILDREN), Random(f"{seed}/{host}/{number}")
        child = breadth * number + 1
        near = (0, (number - 1) // breadth, number - 1, number + 1, *range(child, child + breadth))
        found = [(host, page) for page in near if 0 <= page < sizes[host]]
        for _ in range(max(1, len(found) // _AWAY)):
            other = population.linked_host(draw.getrandbits(32))
            is_front = population.is_front(draw.getrandbits(22))
            found.append((other, 0 if is_front else draw.randrange(sizes[other])))
        draw.shuffle(found)
        return found

    return links


def page_ranks(pages: LinkedPages) -> RankArray:
    """Return the PageRank of each page; the sum is 1. A page without links hands on to all, as usual.

    By power iteration, until the ranks of a round differ by less than 10^-10 in total.
    """
    count = len(pages)
    links = np.diff(pages.first)
    sources = np.repeat(np.arange(count), links)
    ranks = np.full(count, 1 / count)
    for _ in range(_ROUNDS_MAX):
        shares = ranks / np.maximum(links, 1)
        received = np.bincount(pages.targets, weights=shares[sources], minlength=count)
        nobodys = ranks[links == 0].sum()
        after = (1 - DAMPING) / count + DAMPING * (received + nobodys / count)
        error = np.abs(after - ranks).sum()
        ranks = after
        if error < _ERROR_MAX:
            return ranks
    raise RuntimeError(f"ranks still change by {error} after {_ROUNDS_MAX} rounds")
