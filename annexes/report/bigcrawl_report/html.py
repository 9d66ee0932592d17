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
from typing import TYPE_CHECKING, Any, Final

from bigcrawl import plots
from bigcrawl.logs.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl_report.document import Document
    from bigcrawl_report.lead import Figure, Lead
    from bigcrawl_report.tables import Cell, Column, Plot, Section, Table

CHARACTERS_MAX: Final = 500
"""Longer text of a cell is cut."""

BAR_WIDTH: Final = 100
EVENTS_SHOWN: Final = 12
CARD_COLUMNS: Final = 3
"""Tables of more columns become cards where it is narrow."""
SIGNS: Final = {"good": "●", "warn": "▲", "bad": "✕", "done": "■"}
_NUMERIC: Final = frozenset({"count", "bytes", "share", "number", "seconds"})


def html_of(document: Document) -> str:
    data = {
        "plots": {plot.name: plot.to_json() for plot in document.plots},
        "tiles": {
            section.name: [[plain(name), value] for name, value in section.tiles] for section in document.sections
        },
    }
    return Template(_read_file("report.html")).substitute(
        policy=escape(_security_policy()),
        style=_style(),
        crawl=_escaped_text(document.crawl),
        lead=_lead_html(document.lead) if document.lead is not None else "",
        contents="".join(f'<li><a href="#{s.name}">{_escaped_text(s.title)}</a></li>' for s in document.sections),
        sections="".join(map(_section_html, document.parts)),
        papers=_papers_html(document.papers),
        data=embedded_json(data),
        script=_script(),
    )


def embedded_json(data: object) -> str:
    """Return JSON for a script element: nothing in it closes the element, or opens a comment."""
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


def _papers_html(sections: Sequence[Section]) -> str:
    if not sections:
        return ""
    about = "The tables that follow are those of papers about crawlers, so that crawls can be compared."
    return f'<div class="papers"><p class="lead">{about}</p>{"".join(map(_section_html, sections))}</div>'


def _lead_html(lead: Lead) -> str:
    texts = [(name, _time_html(of) if isinstance(of, float) else _escaped_text(str(of))) for name, of in lead.identity]
    identity = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in texts)
    figures = "".join(map(_figure_html, lead.figures))
    return (
        f'<section aria-label="This crawl"><div class="state"><span class="sign {lead.kind}" aria-hidden="true">'
        f'{SIGNS[lead.kind]}</span><p class="word {lead.kind}">{_escaped_text(lead.word)}</p>'
        f'<p class="why">{_escaped_text(lead.why)}</p></div><dl class="identity">{identity}</dl>'
        f'<dl class="figures">{figures}</dl>{_plots_html([lead.plot])}{_events_html(lead.plot.events)}</section>'
    )


def _events_html(events: Sequence[Mapping[str, Any]]) -> str:
    rows = [f"<li>{_time_html(each['at'])} {_escaped_text(each['text'])}</li>" for each in events[:EVENTS_SHOWN]]
    return f'<h2 class="minor">Events</h2><ol class="events">{"".join(rows)}</ol>' if rows else ""


def _figure_html(figure: Figure) -> str:
    more = "".join(f'<span class="more">{_escaped_text(text)}</span>' for text in figure.more)
    return (
        f'<div><dt>{_escaped_text(figure.name)}</dt><dd><span class="value">{_escaped_text(figure.value)}</span>{more}'
        f"{_course_svg(figure.course)}</dd></div>"
    )


def _course_svg(course: Sequence[float | None]) -> str:
    """Return a line chart without axes; the line is broken at unknown values."""
    known = [value for value in course if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    path, is_open = "", False
    for at, value in enumerate(course):
        if value is not None:
            x, y = 100 * at / max(1, len(course) - 1), 19 - 18 * (value - low) / ((high - low) or 1)
            path += f"{'L' if is_open else 'M'}{x:.1f} {y:.1f}"
        is_open = value is not None
    return (
        '<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{path}"/></svg>'
    )


def _section_html(section: Section) -> str:
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
        f'<h2 id="{section.name}-title">{_escaped_text(section.title)}</h2><p>{_escaped_text(section.about)}</p>'
        f"{_tiles_html(section)}{_plots_html(section.plots)}{''.join(map(_table_html, section.tables))}</section>\n"
    )


def _tiles_html(section: Section) -> str:
    """Return the placeholder of a treemap, which a script draws; the table has the same numbers."""
    if len(section.tiles) <= 1:
        return ""
    return f'<div class="treemap" data-tiles="{section.name}" aria-hidden="true"></div>'


def _plots_html(some: Sequence[Plot]) -> str:
    figures = [
        f'<figure class="plot" data-plot="{plot.name}"><figcaption>{_escaped_text(plot.title)}</figcaption></figure>'
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
        f'<th scope="col" role="columnheader"{_class_attribute(column)}>{_escaped_text(column.name)}</th>'
        for column in table.columns
    )
    rows = "".join(_row_html(table, row) for row in table.rows)
    body = (
        f'<div class="tables"><table class="{"cards" if len(table.columns) > CARD_COLUMNS else "plain"}" role="table">'
        f'<caption class="hidden">{_escaped_text(table.title)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )
    if table.is_long:
        body = f"<details><summary>{len(table.rows):,} rows</summary>{body}</details>"
    return f"{title}{body}{note}"


def _row_html(table: Table, row: Sequence[Cell]) -> str:
    (first, *others), (name, *columns) = row, table.columns
    cells = [f'<th scope="row" role="rowheader">{_cell_text(name, first)}</th>']
    cells += [
        f'<td role="cell" data-label="{_escaped_text(column.name)}"{_class_attribute(column)}>'
        f"{_cell_text(column, cell)}</td>"
        for column, cell in zip(columns, others, strict=True)
    ]
    return f'<tr role="row">{"".join(cells)}</tr>'


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
        return _time_html(cell)
    return f"{cell:,.0f}" if column.kind in ("count", "bytes") else f"{cell:,.3f}".rstrip("0").rstrip(".")


def _time_html(time_s: float) -> str:
    """Return a time in UTC, which a script converts to the reader's zone."""
    text = datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f'<time datetime="{text.replace(" ", "T")}Z">{text} UTC</time>'


def _bar_svg(share: float) -> str:
    width = round(min(max(share, 0.0), 1.0) * BAR_WIDTH, 1)
    return (
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:g}" height="10"/></svg>'
    )


def _escaped_text(text: str) -> str:
    cut = text if len(text) <= CHARACTERS_MAX else text[:CHARACTERS_MAX] + "…"
    return escape(plain(cut))
