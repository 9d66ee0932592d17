"""Gaps between fetches, compared with the required ones.

Also UbiCrawler's measures of a distributed crawler: coverage, overlap, communication. Source: UbiCrawler §6.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bigcrawl_report.tables import NAME_VALUE, Column, Section, Table, share_of

if TYPE_CHECKING:
    from bigcrawl.views.figures import CrawlFigures


def politeness(of: CrawlFigures) -> Section:
    counted = of.counted
    tables = [_due_table(of), _gaps_table(of)]
    for name, title, gaps in (
        ("host_gaps", "The tightest gaps of hosts", counted.host_gaps),
        ("server_gaps", "The tightest gaps of servers", counted.server_gaps),
        ("space_gaps", "The tightest gaps of spaces", counted.space_gaps),
    ):
        if sum(gaps.counts):
            tables.append(_tightest_table(name, title, gaps))
    return Section(
        "politeness",
        "Politeness as kept",
        "At a host from the end of a fetch to the start of the next, robots.txt included; at a server, and in a space "
        "that hosts share, from start to start. Each node measures between its own fetches; between nodes, Redis keeps "
        "the gaps.",
        tables,
    )


def _due_table(of: CrawlFigures) -> Table:
    policy = of.config.politeness
    rows = [
        (
            "delay of a host",
            f"{policy.host_delay_ms / 1000:g} s, or more if its robots.txt asks for it, or if it is slow",
        ),
        ("gap of a server", f"{policy.server_delay_ms / 1000:g} s" if policy.server_delay_ms else "none"),
        ("connections of a host", f"{policy.host_connections}"),
        ("robots.txt", "obeyed" if policy.obey_robots else "ignored"),
        ("hosts: gaps that were too short", _short_gaps_text(of.counted.host_gaps)),
        ("servers: gaps that were too short", _short_gaps_text(of.counted.server_gaps)),
        ("spaces: gaps that were too short", _short_gaps_text(of.counted.space_gaps)),
    ]
    note = "By the settings with which this report was made. A gap that is short by 1 ms or less is one of rounding."
    if policy.host_connections > 1:
        note += " With several connections a host its fetches overlap, and no gaps of hosts are measured."
    return Table("due", "What was due, and whether it was kept", NAME_VALUE, rows, note)


def _short_gaps_text(gaps: Any) -> str:
    measured = sum(gaps.counts)
    return f"{gaps.counts[0]:,} of {measured:,}" if measured else "none measured"


def _gaps_table(of: CrawlFigures) -> Table:
    hosts, servers, spaces = of.counted.host_gaps, of.counted.server_gaps, of.counted.space_gaps
    bounds = (
        "less than 1, too short",
        *(f"{low:g} to {high:g}" for low, high in pairwise(hosts.bounds)),
    )
    names = (*bounds, f"{hosts.bounds[-1]:g} and more")
    measured = sum(hosts.counts)
    rows = [
        (name, host, share_of(host, measured), server, space)
        for name, host, server, space in zip(names, hosts.counts, servers.counts, spaces.counts, strict=True)
    ]
    columns = (
        Column("gap, divided by what was due", "text"),
        Column("hosts"),
        Column("share of hosts", "share", has_bar=True),
        Column("servers"),
        Column("spaces"),
    )
    return Table("gaps", "Gaps", columns, rows)


def _tightest_table(name: str, title: str, gaps: Any) -> Table:
    columns = (Column("name", "text"), Column("gap", "seconds"), Column("due", "seconds"), Column("ratio", "number"))
    rows = [(gap.name, gap.gap_ms / 1000, gap.due_ms / 1000, round(gap.ratio, 3)) for gap in gaps.tightest]
    return Table(name, title, columns, rows, "The smallest gap of each, the tightest first.")


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
