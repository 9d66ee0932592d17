"""Lays out the screen of `scrapy frontier top`, for any width and height, with the package rich."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bigcrawl.commands.looking.status import INDENT, WRONG, end_lines, notice_lines, title_lines
from bigcrawl.logs.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from bigcrawl.views.watching import PollResults

WIDE: Final = 100
LEAST_ROWS: Final = 2
ABOVE_ROWS: Final = 2


def screen_of(seen: PollResults, width: int, height: int, *, is_live: bool) -> Group:
    """Return the screen, cut to `height` lines. If `is_live`, it names the key that ends the program."""
    head = _crawl_lines(seen, width, is_live=is_live)
    if seen.status is None:
        return Group(*head)
    left = height - len(head)
    tables: list[RenderableType] = []
    wanted = [
        _nodes_table(seen.status["nodes"], width),
        _errors_table(seen.errors, width),
        _hosts_table(seen.hosts, width),
    ]
    for number, (table, rows) in enumerate(wanted):
        if not rows or left < ABOVE_ROWS + 1:
            continue
        others = sum(ABOVE_ROWS + min(LEAST_ROWS, len(later)) for _, later in wanted[number + 1 :] if later)
        room = max(min(LEAST_ROWS, left - ABOVE_ROWS), left - ABOVE_ROWS - others)
        shown = rows if len(rows) <= room else rows[: max(1, room - 1)]
        for row in shown:
            table.add_row(*(Text(plain(cell)) for cell in row))  # a str would be read as markup
        if len(shown) < min(len(rows), room):
            table.add_row(f"({len(rows) - len(shown)} more)")
        tables += [Text(""), table]
        left -= ABOVE_ROWS + min(len(rows), room)
    return Group(*head, *tables)


def _crawl_lines(seen: PollResults, width: int, *, is_live: bool) -> list[Text]:
    """Return the lines about the whole crawl; warnings wrap instead of being cut off."""
    lines: list[Text] = []
    if seen.trouble:
        lines += _wrapped_lines(f"figures are {seen.silent_s:,.0f} s old: {seen.trouble}", width, "bold red")
    if seen.status is None:
        return [*lines, _styled_line("nothing was read yet")]
    overview = _overview_lines(seen.status)
    first = overview[0] + ("   q ends this" if is_live else "")
    lines.append(_styled_line(first, "bold"))
    for text in overview[1:]:
        if text[:INDENT].rstrip() in WRONG:
            lines += _wrapped_lines(text, width, "yellow")
        else:
            lines.append(_styled_line(text))
        if text.startswith("pages") and seen.rates:
            lines.append(_styled_line(_rates_text(seen.rates)))
    return lines


def _overview_lines(status: dict[str, Any]) -> list[str]:
    urls, hosts = status["urls"], status["hosts"]
    return [
        *title_lines(status),
        (
            f"pages       {status['pages']:,} ({status['bytes'] / 1e6:,.1f} MB), {status['pages_per_s']:.1f} a second; "
            f"{status['items']:,} items"
        ),
        *end_lines(status),
        (
            f"hosts       {hosts['ready']:,} ready, {hosts['waiting']:,} waiting, {hosts['busy']:,} busy; "
            f"{hosts['snoozed']:,} snoozed, {hosts['retired']:,} retired"
        ),
        (
            f"URLs        {urls['inbox']:,} in inboxes, {urls['disk']:,} on disk, {urls['queued']:,} in Redis, "
            f"{urls['taken']:,} taken, {urls['ended']:,} ended, {urls['withheld']:,} withheld; {urls['seen']:,} seen"
        ),
        f"partitions  {status['partitions']['owned']} of {status['partitions']['all']} owned",
        *notice_lines(status),
    ]


def _rates_text(rates: Mapping[str, float]) -> str:
    return (
        f"a second    {rates['bytes'] / 1e6:,.2f} MB, {max(0.0, rates['new']):,.1f} new URLs, {rates['errors']:,.1f} "
        f"errors, {rates['dropped']:,.1f} dropped"
    )


def _wrapped_lines(text: str, width: int, style: str) -> list[Text]:
    return [_styled_line(line, style) for line in textwrap.wrap(text, max(width, 20), subsequent_indent=" " * INDENT)]


def _styled_line(text: str, style: str = "") -> Text:
    return Text(plain(text), style=style, no_wrap=True, overflow="ellipsis")


Rows = list[tuple[str, ...]]


def _nodes_table(nodes: Mapping[str, Mapping[str, Any]], width: int) -> tuple[Table, Rows]:
    table = _new_table("node", "pages/s", "partitions", *(("held", "fetches", "outbox") if width >= WIDE else ()))
    rows: Rows = []
    for name, node in nodes.items():
        row = (name, f"{node['pages_per_s']:.1f}", f"{node['partitions']:,}")
        more = (f"{node['held']:,}", f"{node['fetches_max']:,}", f"{node['outbox']:,}") if width >= WIDE else ()
        rows.append((*row, *more))
    return table, rows


def _errors_table(errors: Sequence[Mapping[str, Any]], width: int) -> tuple[Table, Rows]:
    table = _new_table(
        "most frequent failures", "tries", "sites", *(("worst",) if width >= WIDE else ()), last_is_text=width >= WIDE
    )
    rows: Rows = []
    for found in errors:
        worst = f"{found['worst'][0]['pld']} {found['worst'][0]['fetches']:,}"
        row = (found["reason"], f"{found['fetches']:,}", f"{found['plds']:,}")
        rows.append((*row, *((worst,) if width >= WIDE else ())))
    return table, rows


def _hosts_table(found: Mapping[str, Any] | None, width: int) -> tuple[Table, Rows]:
    title = "host with most waiting" if found is None or found["is_whole"] else "of those due first, most waiting"
    more = ("due in s", "rest s", "failures") if width >= WIDE else ("failures",)
    table = _new_table(title, "state", "in Redis", *more, last_is_text=True)
    rows: Rows = []
    for host in (found or {"hosts": []})["hosts"]:
        failed = f"{host['failures']:,} {host['why']}" if host["failures"] else ""
        due = "" if host["due_in_s"] is None else f"{host['due_in_s']:,.1f}"
        times = (due, f"{host['rest_s']:,.1f}") if width >= WIDE else ()
        rows.append((host["host"], host["state"], f"{host['queued']:,}", *times, failed))
    return table, rows


def _new_table(first: str, *others: str, last_is_text: bool = False) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", expand=True)
    table.add_column(first, no_wrap=True, overflow="ellipsis", ratio=3)
    for number, name in enumerate(others, 1):
        if last_is_text and number == len(others):
            table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=2)
        else:
            table.add_column(name, no_wrap=True, justify="right")
    return table
