"""UbiCrawler's measures of a distributed crawler: coverage, overlap, communication. Source: UbiCrawler §6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl_report.tables import NAME_VALUE, Section, Table, share_of

if TYPE_CHECKING:
    from bigcrawl.views.figures import CrawlFigures


def ubicrawler(of: CrawlFigures) -> Section:
    return Section(
        "distribution",
        "Coverage, overlap, communication",
        "How well the nodes of the crawl work together.",
        [_measures_table(of)],
    )


def _measures_table(of: CrawlFigures) -> Table:
    urls, counts, sent = of.status["urls"], of.counts, of.counted
    left = sum(urls[name] for name in ("disk", "queued", "taken", "withheld", "unrunnable", "damaged"))
    known = counts["ended"] + left + counts["lost"]
    coverage = share_of(counts["ended"], known)
    overlap = share_of(of.may_repeat, of.pages)
    elsewhere = share_of(sent.urls_sent_elsewhere, sent.urls_sent)
    rows = [
        (
            "coverage: URLs that ended, of those that were to be fetched",
            "unknown" if coverage is None else f"{coverage:.2%}",
        ),
        ("URLs that still wait, are taken or withheld", f"{left:,}"),
        ("URLs lost by a Redis that forgot them", f"{counts['lost']:,}"),
        (
            "overlap: pages that were fetched twice, at most",
            "unknown" if overlap is None else f"{of.may_repeat:,} ({overlap:.4%})",
        ),
        ("URLs that were queued again when a partition was opened", f"{counts['readmitted']:,}"),
        ("communication: URLs sent to inboxes, a page", f"{counts['appended_urls'] / max(1, of.pages):,.2f}"),
        (
            "of these to partitions of other nodes, a page",
            "unknown"
            if elsewhere is None
            else f"{counts['appended_urls'] * elsewhere / max(1, of.pages):,.2f} ({elsewhere:.1%})",
        ),
    ]
    note = (
        "Coverage is of the URLs that the crawl knows; what it has never found a link to is unknown. Overlap is a "
        "bound: what was in process on nodes that died, and what live nodes may have in process now. URLs that the "
        "operator had fetched once more are not in it."
    )
    return Table("measures", "Measures of a distributed crawl", NAME_VALUE, rows, note, "UbiCrawler, §6")
