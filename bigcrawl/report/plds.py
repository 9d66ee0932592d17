"""The PLDs with most pages, and pages by in-degree, from the nodes' counts and the partitions' files.

Files have only keys of PLDs, so the names are those that nodes have counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.scheduler.budgets.in_degrees import LOWEST
from bigcrawl.views.plds import TopPld, read_files, top_plds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
    from bigcrawl.views.opened_crawl import OpenedCrawl

TOP: Final = 50
PARTITIONS_MAX: Final = 4_096
"""With more, only the files of listed PLDs are read, and there are no sums over all files."""


class PldFigures(NamedTuple):
    """The figures of PLDs.

    Attributes:
        sampled: pages and in-degree of each PLD of a fair sample; None for an unknown in-degree.
        linked: the PLDs of the whole crawl in each bin of `in_degrees.LOWEST`.
        edges: links from one PLD to another; None if files are missing.
        nodes: an upper bound of the PLDs in the files' tables.
        unread: partitions whose files could not be read.
    """

    top: list[TopPld]
    sampled: list[tuple[int, int | None]]
    linked: list[int]
    edges: int | None
    nodes: int | None
    unread: int


def read_pld_figures(crawl: OpenedCrawl, counted: Any, counts: InDegreeCounts, begun: Collection[int]) -> PldFigures:
    """Look up the in-degrees of the counted PLDs; `begun` are the partitions that have files somewhere."""
    top = counted.pages_by_pld.rows()[:TOP]
    names = {row.name for row in top} | counted.sampled_plds.counts.keys()
    files = read_files(crawl, names, range(crawl.partitions) if crawl.partitions <= PARTITIONS_MAX else ())
    read = files.partitions
    unread = len(set(begun) - read.keys())
    return PldFigures(
        top_plds(crawl, top, files.in_degrees, counts),
        [(pages, files.in_degrees.get(name)) for name, pages in counted.sampled_plds.counts.items()],
        [int(count) for count in counts.by_bin],
        sum(found.edges for found in read.values()) if not unread else None,
        sum(found.plds for found in read.values()) if not unread else None,
        unread,
    )


class DegreeRow(NamedTuple):
    """PLDs with an in-degree from `low` to `high`: `linked` in the crawl, `sampled` with a mean of `pages` each."""

    low: int
    high: int
    linked: int | None
    sampled: int
    pages: float | None


def by_degree(figures: PldFigures) -> list[DegreeRow]:
    """Return PLDs by in-degree: 0, 1, 2 to 3, 4 to 7, and so on, without empty rows."""
    pages: dict[int, list[int]] = {}
    for count, degree in figures.sampled:
        if degree is not None:
            pages.setdefault(degree.bit_length(), []).append(count)
    linked: dict[int, int] = {}
    for lowest, count in zip(LOWEST.tolist(), figures.linked, strict=False):
        linked[int(lowest).bit_length()] = linked.get(int(lowest).bit_length(), 0) + count
    rows = []
    for bits in range(33):
        some = pages.get(bits, [])
        if some or linked.get(bits):
            mean = round(sum(some) / len(some), 2) if some else None
            low = (1 << bits) >> 1
            high = max(0, (1 << bits) - 1)
            rows.append(DegreeRow(low, high, linked.get(bits) if bits else None, len(some), mean))
    return rows


def percentile(values: Iterable[int], share: float) -> int | None:
    """Return the value that this share of the values do not exceed; None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
