"""uPlot 1.6.32, the library that draws plots on pages: its script and its style, unchanged from its npm package.

Its licence (MIT) is beside them; docs/decisions/0092-plots-are-drawn-by-uplot.md tells how to renew them.
"""

from __future__ import annotations

from importlib.resources import files


def script() -> str:
    """Return the JavaScript, which defines `uPlot`; 51 KB."""
    return _read_text("uplot.min.js")


def style() -> str:
    """Return the CSS; 2 KB."""
    return _read_text("uplot.min.css")


def _read_text(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")
