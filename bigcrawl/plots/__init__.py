"""Shared by the dashboard and the report: uPlot with its plots, treemaps, and the style of both pages.

uPlot 1.6.32 is unchanged from its npm package, with its licence (MIT); docs/decisions/0092-plots-are-drawn-by-uplot.md
says how to renew it. `timeplot.js`, `treemap.js` and `look.css` are bigcrawl's own.
"""

from __future__ import annotations

from importlib.resources import files


def script() -> str:
    """Return the JavaScript that defines `uPlot`, `TimePlot` and `placeTiles`; 67 KB."""
    return "\n".join(map(_read_text, ("uplot.min.js", "timeplot.js", "treemap.js")))


def style() -> str:
    """Return the style sheet of uPlot, the plots, the colours and the text sizes; 9 KB."""
    return f"{_read_text('uplot.min.css')}\n{_read_text('look.css')}"


def _read_text(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")
