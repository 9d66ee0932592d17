"""The sections that operators need first: state, rates, failures, hosts, sites, nodes, queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.clock import length_text
from bigcrawl_report.irlbot import top_plds_table
from bigcrawl_report.polybot import dropped_table, errors_table, failures_table, unread_table
from bigcrawl_report.tables import NAME_VALUE, Column, Plot, Section, Table

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
    """Return the sections in the order in which operators need them."""
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


def state_table(of: CrawlFigures, rates: HistoryRates) -> Table:
    status, urls, hosts = of.status, of.status["urls"], of.status["hosts"]
    state = "finished" if status["finished"] else "running" if status["nodes"] else "not running, and not finished"
    rows: list[tuple[str, str]] = [("state", state)]
    rows += [("stands still", reason) for reason in status["standstill"]] if status["nodes"] else []
    if rates.steps:
        rows.append(("nodes ran for", f"{_length_of_time(rates.active_s)}"))
        rows.append(
            (
                "pages a second, while nodes ran",
                f"{sum(filter(None, rates.growth_per_step('pages'))) / max(1, rates.active_s):,.1f}",
            )
        )
        if peaks := [rate for rate in rates.a_second("pages") if rate is not None]:
            rows.append((f"pages a second, best {_length_of_time(rates.step_s)}", f"{max(peaks):,.1f}"))
    rows += [
        ("pages", f"{of.pages:,}"),
        ("bytes of their bodies", f"{of.counts['bytes'] / 1e6:,.1f} MB"),
        ("distinct URLs seen", f"{urls['seen']:,}"),
        ("URLs that wait", f"{urls['disk'] + urls['queued'] + urls['inbox']:,}"),
        ("URLs that are withheld", f"{urls['withheld']:,}"),
        ("hosts in Redis", f"{sum(hosts.values()) - hosts['snoozed']:,}"),
        ("live nodes", f"{len(status['nodes']):,}"),
        ("partitions", f"{status['partitions']['all']:,}"),
    ]
    return Table("state", "State of the crawl", NAME_VALUE, rows)


def rates_table(rates: HistoryRates) -> Table:
    columns = ("until", "pages/s", "MB/s", "errors/s", "new URLs/s", "pages", "nodes")
    kinds = ("time", "number", "number", "number", "number", "count", "count")
    rows = zip(
        rates.ends_s,
        rates.a_second("pages"),
        rates.a_second("bytes", 1e6),
        rates.a_second("errors"),
        rates.a_second("seen"),
        rates.level_per_step("pages"),
        rates.level_per_step("nodes"),
        strict=True,
    )
    return Table(
        "rates",
        f"Rates, every {_length_of_time(rates.step_s)}",
        tuple(Column(name, kind) for name, kind in zip(columns, kinds, strict=True)),
        list(rows),
        "Empty where no node ran. Old samples are farther apart, so a row of a long crawl may cover more time.",
        "IRLbot, Figure 5",
        is_long=True,
    )


def _length_of_time(seconds: float) -> str:
    return length_text(seconds, 1).replace(".0 ", " ")
