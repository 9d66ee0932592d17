"""The sections that an operator asks for first: failures, hosts, sites, nodes, queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_report.irlbot import top_plds_table
from bigcrawl_report.overview import rates_table, state_table
from bigcrawl_report.polybot import dropped_table, errors_table, failures_table, unread_table
from bigcrawl_report.tables import Column, Plot, Section, Table

if TYPE_CHECKING:
    from bigcrawl.views.figures import CrawlFigures
    from bigcrawl_report.rates import HistoryRates

WAITING: Final = {
    "urls_disk": "on disk",
    "urls_queued": "in Redis",
    "urls_inbox": "in inboxes",
    "urls_withheld": "withheld",
}
HOSTS: Final = {
    "hosts_ready": "ready",
    "hosts_waiting": "waiting",
    "hosts_busy": "busy",
    "hosts_snoozed": "snoozed",
    "hosts_retired": "retired",
}
FAILED: Final = {"errors": "errors", "status_4xx": "4xx", "status_5xx": "5xx"}


def crawl_sections(of: CrawlFigures, rates: HistoryRates) -> list[Section]:
    """Return the sections in the order in which an operator asks."""
    return [_failures(of, rates), _hosts(of, rates), _sites(of, rates), _nodes(of, rates), _queues(of, rates)]


def _failures(of: CrawlFigures, rates: HistoryRates) -> Section:
    plot = Plot(
        "failures_per_s",
        "Failures a second",
        rates.ends_s,
        {shown: rates.a_second(name) for name, shown in FAILED.items()},
        stops=rates.stops,
    )
    tables = [failures_table(of), errors_table(of), dropped_table(of), unread_table(of)]
    return Section(
        "failures", "What fails, and why", "Tries that failed, and URLs that ended without a page.", tables, [plot]
    )


def _hosts(of: CrawlFigures, rates: HistoryRates) -> Section:
    hosts = of.status["hosts"]
    rows = [(shown, hosts[shown]) for shown in HOSTS.values()]
    tail = of.status.get("tail")
    about = "A crawl ends no sooner than its longest host: one page at a time, with a rest between two."
    if tail:
        about += f" That is {tail['host']} with {tail['urls']:,} URLs."
    table = Table("hosts_by_state", "Hosts in Redis", (Column("state", "text"), Column("hosts")), rows)
    return Section(
        "hosts", "Hosts that hold the crawl up", about, [table], [_levels("hosts", "Hosts by state", HOSTS, rates)]
    )


def _sites(of: CrawlFigures, rates: HistoryRates) -> Section:
    plot = Plot(
        "megabytes_per_s",
        "Megabytes a second",
        rates.ends_s,
        {"bodies": rates.a_second("bytes", 1e6)},
        stops=rates.stops,
    )
    tiles = [(row.name, row.pages) for row in of.plds.top]
    left = of.pages - sum(pages for _, pages in tiles)
    if tiles and left > 0:
        tiles.append(("all others", left))
    about = "Each box is a pay-level domain, as large as its pages."
    return Section("sites", "Where the pages are", about, [top_plds_table(of)], [plot], tiles=tiles)


def _nodes(of: CrawlFigures, rates: HistoryRates) -> Section:
    columns = (Column("node", "text"), Column("partitions"), Column("pages/s", "number"), Column("URLs held"))
    rows = [(name, node["partitions"], node["pages_per_s"], node["held"]) for name, node in of.status["nodes"].items()]
    partitions = of.status["partitions"]
    about = f"{partitions['owned']:,} of {partitions['all']:,} partitions have an owner."
    plot = _levels("nodes", "Nodes that ran", {"nodes": "nodes"}, rates)
    return Section("nodes", "Nodes and partitions", about, [Table("nodes", "Nodes that run", columns, rows)], [plot])


def _queues(of: CrawlFigures, rates: HistoryRates) -> Section:
    plot = _levels("waiting", "URLs that wait, by place", WAITING, rates)
    tables = [state_table(of, rates), rates_table(rates)]
    return Section(
        "queues", "Queues and rates", "Over all nodes and runs; lines end where nothing ran.", tables, [plot]
    )


def _levels(name: str, title: str, columns: dict[str, str], rates: HistoryRates) -> Plot:
    series = {shown: rates.level_per_step(column) for column, shown in columns.items()}
    return Plot(name, title, rates.ends_s, dict(series), stops=rates.stops)
