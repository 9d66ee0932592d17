"""The page of a report: one file that loads nothing. Everything from the web is escaped here.

All tables work without JavaScript; a script draws the plots.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Final

from bigcrawl import plots
from bigcrawl.logs.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl_report.document import Document
    from bigcrawl_report.tables import Cell, Column, Plot, Section, Table

CHARACTERS_MAX: Final = 500
"""Longer text of a cell is cut."""

BAR_WIDTH: Final = 100
_NUMERIC: Final = frozenset({"count", "bytes", "share", "number", "seconds"})


def html_of(document: Document) -> str:
    data = {plot.name: plot.to_json() for plot in document.plots}
    return Template(_read_file("report.html")).substitute(
        policy=escape(_security_policy()),
        style=_style(),
        crawl=_escaped_text(document.crawl),
        made=_escaped_text(document.time_made),
        state="The crawl is finished." if document.is_finished else "The crawl is not finished.",
        contents="".join(f'<li><a href="#{s.name}">{_escaped_text(s.title)}</a></li>' for s in document.sections),
        sections="".join(map(_section_html, document.sections)),
        data=embedded_json(data),
        script=_script(),
    )


def embedded_json(data: object) -> str:
    """Return JSON for a script element: nothing in it ends the element, or begins a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _security_policy() -> str:
    """Return a content security policy that allows only the page's script and style, by their hashes."""
    return (
        f"default-src 'none'; script-src '{_csp_hash(_script())}'; style-src '{_csp_hash(_style())}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _script() -> str:
    return f"{plots.script()}\n{_read_file('report.js')}"


@cache
def _style() -> str:
    return f"{plots.style()}\n{_read_file('report.css')}"


def _read_file(name: str) -> str:
    return files(__package__ or "").joinpath("page", name).read_text("utf-8")


def _section_html(section: Section) -> str:
    first, *others = section.tables
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
        f'<h2 id="{section.name}-title">{_escaped_text(section.title)}</h2><p>{_escaped_text(section.about)}</p>'
        f"{_table_html(first)}{_plots_html(section.plots)}{''.join(map(_table_html, others))}</section>\n"
    )


def _plots_html(some: Sequence[Plot]) -> str:
    figures = [
        f"<figure><figcaption>{_escaped_text(plot.title)}</figcaption>"
        f'<div class="plot" data-plot="{plot.name}" role="img" aria-label="Plot: '
        f'{_escaped_text(plot.title)}"></div></figure>'
        for plot in some
        if len(plot.x) > 1
    ]
    return f'<div class="plots">{"".join(figures)}</div>' if figures else ""


def _table_html(table: Table) -> str:
    source = f' <span class="source">{_escaped_text(table.source)}</span>' if table.source else ""
    note = f'<p class="note">{_escaped_text(table.note)}</p>' if table.note else ""
    title = f'<h3 id="table-{table.name}">{_escaped_text(table.title)}{source}</h3>'
    if not table.rows:
        return f'{title}<p class="note">Nothing was counted.</p>'
    head = "".join(
        f'<th scope="col"{_class_attribute(column)}>{_escaped_text(column.name)}</th>' for column in table.columns
    )
    rows = "".join(_row_html(table, row) for row in table.rows)
    body = (
        f'<div class="scroll" role="region" aria-labelledby="table-{table.name}" tabindex="0"><table>'
        f'<caption class="hidden">{_escaped_text(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    if table.is_long:
        body = f"<details><summary>{len(table.rows):,} rows</summary>{body}</details>"
    return f"{title}{body}{note}"


def _row_html(table: Table, row: Sequence[Cell]) -> str:
    (first, *others), (name, *columns) = row, table.columns
    cells = [f'<th scope="row">{_cell_text(name, first)}</th>']
    cells += [
        f"<td{_class_attribute(column)}>{_cell_text(column, cell)}</td>"
        for column, cell in zip(columns, others, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _class_attribute(column: Column) -> str:
    return ' class="number"' if column.kind in _NUMERIC else ""


def _cell_text(column: Column, cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str) or column.kind == "text":
        return _escaped_text(str(cell))
    if column.kind == "share":
        return f"{cell:.2%}{_bar_svg(cell) if column.has_bar else ''}"
    if column.kind == "time":
        return datetime.fromtimestamp(cell, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{cell:,.0f}" if column.kind in ("count", "bytes") else f"{cell:,.3f}".rstrip("0").rstrip(".")


def _bar_svg(share: float) -> str:
    width = round(min(max(share, 0.0), 1.0) * BAR_WIDTH, 1)
    return (
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:g}" height="10"/></svg>'
    )


def _escaped_text(text: str) -> str:
    cut = text if len(text) <= CHARACTERS_MAX else text[:CHARACTERS_MAX] + "…"
    return escape(plain(cut))
