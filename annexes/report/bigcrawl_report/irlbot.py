"""IRLbot's figures: hosts, PLDs and addresses, the share of gzip, uniqueness, reputation. Source: IRLbot §7."""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.views.figures import TOP
from bigcrawl_report.polybot import SHARE, with_others
from bigcrawl_report.tables import NAME_VALUE, Column, Plot, Section, Table, share_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.views.figures import CrawlFigures, PldFigures
    from bigcrawl_report.rates import HistoryRates


def irlbot(of: CrawlFigures, rates: HistoryRates) -> Section:
    """Return the section with IRLbot's figures."""
    plots = [plot for plot in (_uniqueness_plot(rates), _degree_plot(of)) if plot.x]
    return Section(
        "web",
        "The web that was met",
        "Hosts, PLDs and servers that answered are counted within some 3 %, whatever their number.",
        [
            _figures_table(of),
            _encodings_table(of),
            _degrees_table(of),
            _percentiles_table(of),
            _queues_table(of),
        ],
        plots,
    )


def _figures_table(of: CrawlFigures) -> Table:
    counted, counts = of.counted, of.counts
    packed = sum(row.times for row in counted.encodings.rows()) + counted.encodings.others
    ratio = f"1:{counted.unpacked_bytes / counted.unpacked_from:,.2f}" if counted.unpacked_from else "unknown"
    robots_bytes = sum(row.amount for row in counted.robots.rows())
    links = counts["appended_urls"] + counted.urls_repeated
    linked = sum(of.plds.linked.values())
    rows = [
        ("requests", f"{of.requests:,}"),
        ("answers", f"{of.pages + of.sum_of('retried:status:'):,}"),
        ("HTML pages with status 200", f"{counted.html:,}"),
        ("bytes of bodies, as transferred", _bytes_text(counts["bytes"])),
        ("bytes of requests, before encryption", _bytes_text(counted.sent_bytes)),
        ("bytes of robots.txt files, unpacked", _bytes_text(robots_bytes)),
        (
            "answers that came packed",
            f"{packed:,} ({_percent_text(share_of(packed, counted.ok_answers))} of those with 200)",
        ),
        ("compression ratio of those that were unpacked", ratio),
        ("DNS look-ups", f"{counted.look_ups:,}"),
        ("links, each URL of a page once", f"{links:,}"),
        ("links, a page (IRLbot's l)", f"{links / max(1, of.pages):,.1f}"),
        ("distinct URLs seen", f"{counts['seen']:,}"),
        ("distinct URLs, a page", f"{counts['seen'] / max(1, of.pages):,.1f}"),
        ("share of links that were new (IRLbot's p)", _percent_text(share_of(counts["seen"], links))),
        ("hosts that answered", f"{counted.hosts.count:,}"),
        ("PLDs that answered", f"{counted.plds.count:,}"),
        ("servers (addresses) that answered", f"{counted.servers.count:,}"),
        ("PLDs that another PLD links to", f"{linked:,}"),
        ("links from PLD to PLD", "unknown" if of.plds.edges is None else f"{of.plds.edges:,}"),
        ("budgets", of.config.budget.policy),
    ]
    note = "Servers behind a proxy that resolves names are not known."
    if of.plds.unread:
        note += f" The files of {of.plds.unread:,} partitions are not here."
    if of.unreadable:
        note += f" What {of.unreadable:,} nodes have counted cannot be read by this version."
    return Table("figures", "The crawl in figures", NAME_VALUE, rows, note, "IRLbot, §7.1 and §7.2")


def _bytes_text(size: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.2f} {unit}"
    return f"{size:,.0f} bytes"


def _percent_text(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.2%}"


def _encodings_table(of: CrawlFigures) -> Table:
    columns = (
        Column("encoding", "text"),
        Column("answers"),
        SHARE,
        Column("bytes", "bytes"),
        Column("mean bytes", "bytes"),
    )
    rows = with_others(of.counted.encodings, of.counted.ok_answers, 20)
    return Table(
        "encodings", "Packed answers", columns, rows, "Shares are of all answers with status 200.", "IRLbot, §7.1"
    )


def top_plds_table(of: CrawlFigures) -> Table:
    columns = (
        *(Column("PLD", "text"), Column("pages"), SHARE, Column("bytes", "bytes")),
        *(Column("in-degree"), Column("rank"), Column("budget")),
    )
    rows = [(row.name, row.pages, share_of(row.pages, of.pages), row.bytes, *row[3:]) for row in of.plds.top]
    note = (
        f"The {TOP} PLDs with most pages. Rank is by in-degree among all PLDs that another one links to, budget in "
        "URLs a turn by the policy of the settings, without rules set by hand and traps."
    )
    return Table("plds", "Top PLDs", columns, rows, note, "IRLbot, Table 4", is_long=len(rows) > 20)


def _degrees_table(of: CrawlFigures) -> Table:
    columns = (Column("in-degree", "text"), Column("PLDs"), Column("of the sample"), Column("pages a PLD", "number"))
    rows = [
        (
            f"{row.low:,}" if row.low == row.high else f"{row.low:,} to {row.high:,}",
            row.linked,
            row.sampled or None,
            row.pages,
        )
        for row in by_degree(of.plds)
    ]
    note = (
        "In-degree is how many other PLDs link to a PLD. Pages are the mean over a fair sample of the PLDs that "
        f"answered, of which one in {1 << of.counted.sampled_plds.depth:,} is in it."
    )
    return Table("degrees", "In-degree against pages", columns, rows, note, "IRLbot, Figure 6 (b)")


def _queues_table(of: CrawlFigures) -> Table:
    plds, budget, turns = of.counted.plds.count, of.plds.mean_budget, of.plds.turns
    alpha = None if budget is None else budgets_used(of.pages, budget, plds)
    rows = [
        ("pages, N", f"{of.pages:,}"),
        ("PLDs that answered, V", f"{plds:,}"),
        ("mean budget of a PLD, E[B]", "no budgets" if budget is None else f"{budget:,.1f}"),
        ("how often all budgets were used up, \u03b1", "unknown" if alpha is None else f"{alpha:,.2f}"),
        ("queues by (11)", "unknown" if alpha is None else f"{queues_at(alpha):,}"),
        ("turns that take URLs, in the partition with most", "unknown" if turns is None else f"{turns:,}"),
    ]
    note = "A partition has a window of its own, which doubles from 4 to 128 as URLs over budget are re-read."
    return Table("queues", "Queues of URLs over budget", NAME_VALUE, rows, note, "IRLbot, (9) and (11)")


def budgets_used(pages: int, budget: float, plds: int) -> float:
    """Return how many times the budgets of all PLDs were used up, at least 1 (equation 9)."""
    return max(1.0, pages / max(1.0, budget * plds))


def queues_at(alpha: float) -> int:
    """Return the number of queues at the end of a crawl (equation 11)."""
    return int(2 ** (ceil(log2(alpha + 1)) - 1))


def _degree_plot(of: CrawlFigures) -> Plot:
    rows = [row for row in by_degree(of.plds) if row.low and row.pages]
    return Plot(
        "degrees",
        "Mean pages of a PLD, by its in-degree",
        [float(row.low) for row in rows],
        {"pages a PLD": [row.pages for row in rows]},
        "in-degree",
        "pages",
        is_time=False,
        is_log=True,
    )


def _percentiles_table(of: CrawlFigures) -> Table:
    pages = [count for count, _ in of.plds.sampled]
    rows = [(f"{share:.0%} of the PLDs", percentile(pages, share)) for share in (0.5, 0.9, 0.99)]
    most = max([row.pages for row in of.plds.top], default=None)
    columns = (Column("of", "text"), Column("pages, at most"))
    note = "From the sample; the last row from all."
    return Table("pages_of_plds", "Pages of a PLD", columns, [*rows, ("all PLDs", most)], note, "IRLbot, §7.2")


def _uniqueness_plot(rates: HistoryRates) -> Plot:
    """Plot the share of new URLs among those sent, by pages so far; nodes do not resend recent URLs."""
    rows = [
        (pages, round(new / (new + old), 5))
        for pages, new, old in zip(
            rates.level_per_step("pages"),
            rates.growth_per_step("seen"),
            rates.growth_per_step("duplicates"),
            strict=True,
        )
        if pages and new is not None and old is not None and new + old > 0
    ]
    points = dict(rows)  # ascending, because pages only grow; a step without pages replaces the one before
    return Plot(
        "uniqueness",
        "Share of URLs sent to the seen check that were new, by pages so far",
        list(points),
        {"new": list(points.values())},
        "pages",
        "share",
        is_time=False,
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
    rows = []
    for bits in range(33):
        some = pages.get(bits, [])
        if some or figures.linked.get(bits):
            mean = round(sum(some) / len(some), 2) if some else None
            low = (1 << bits) >> 1
            high = max(0, (1 << bits) - 1)
            rows.append(DegreeRow(low, high, figures.linked.get(bits) if bits else None, len(some), mean))
    return rows


def percentile(values: Iterable[int], share: float) -> int | None:
    """Return the value that this share of the values does not exceed; None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
