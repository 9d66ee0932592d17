"""PLDs: those with most pages, and how pages go with in-degree, from tallies and the partitions' files.

Files have keys of PLDs, and not their names. So a PLD is listed if nodes have counted pages of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.commands.looking.plds import TopPld, read_files, top_plds
from bigcrawl.scheduler.budgets.in_degrees import LOWEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
    from bigcrawl.tallies.tallies import Tallies

TOP: Final = 50
PARTITIONS_MAX: Final = 4_096
"""If a crawl has more, only the files with listed PLDs are read, and there are no sums over all of them."""


class PldFigures(NamedTuple):
    """What is known of PLDs.

    Attributes:
        top: the ones with most pages, most first.
        sampled: pages and in-degree of each PLD of a fair sample; None for an in-degree that is not known.
        linked: how many PLDs have an in-degree in each bin of `in_degrees.LOWEST`, over the whole crawl.
        edges: links from one PLD to another; None if files are missing. `nodes`: PLDs in their tables, at most.
        unread: partitions whose files could not be read.
    """

    top: list[TopPld]
    sampled: list[tuple[int, int | None]]
    linked: list[int]
    edges: int | None
    nodes: int | None
    unread: int


def read_pld_figures(crawl: OpenedCrawl, tallies: Tallies, counts: InDegreeCounts) -> PldFigures:
    """Look up the in-degrees of the PLDs that nodes have counted. `counts` are those of the whole crawl."""
    top = tallies.pages_by_pld.rows()[:TOP]
    names = {row.name for row in top} | tallies.sampled_plds.counts.keys()
    files = read_files(crawl, names, range(crawl.partitions) if crawl.partitions <= PARTITIONS_MAX else ())
    read = files.partitions
    is_whole = len(read) == crawl.partitions
    return PldFigures(
        top_plds(crawl, top, files.in_degrees, counts),
        [(pages, files.in_degrees.get(name)) for name, pages in tallies.sampled_plds.counts.items()],
        [int(count) for count in counts.by_bin],
        sum(found.edges for found in read.values()) if is_whole else None,
        sum(found.plds for found in read.values()) if is_whole else None,
        crawl.partitions - len(read),
    )


class DegreeRow(NamedTuple):
    """PLDs of a range of in-degrees: from `low` to `high`; None for the last of the ranges.

    `linked` is how many the crawl knows, `sampled` how many of the sample, and `pages` the mean of these.
    """

    low: int
    high: int
    linked: int | None
    sampled: int
    pages: float | None


def by_degree(figures: PldFigures) -> list[DegreeRow]:
    """Return PLDs by in-degree: 0, 1, 2 to 3, 4 to 7, and so on, as far as there are any."""
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
    """Return the value that this share of the values do not exceed; None of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
