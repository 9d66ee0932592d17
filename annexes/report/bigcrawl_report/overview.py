"""Tables of the crawl's state and its rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.clock import length_text
from bigcrawl_report.tables import NAME_VALUE, Column, Table

if TYPE_CHECKING:
    from bigcrawl.views.figures import CrawlFigures
    from bigcrawl_report.rates import HistoryRates


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
