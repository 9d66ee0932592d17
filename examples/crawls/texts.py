"""What a page says, without menus, headers and footers, by trafilatura (`pip install trafilatura`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from scrapy.http import TextResponse

BYTES_MAX = 1 << 20
"""Of a longer page the beginning is read: a tree of many elements takes much more memory, and time, than its text."""


class Text(NamedTuple):
    """The main text of a page; empty if none was found. `date` is YYYY-MM-DD, or empty."""

    title: str
    date: str
    text: str


def main_text(response: TextResponse) -> Text:
    """Return what trafilatura finds."""
    from trafilatura import bare_extraction  # the other spiders of the project do without it

    found: Any = bare_extraction(response.body[:BYTES_MAX], url=response.url, with_metadata=True)
    if found is None:
        return Text("", "", "")
    return Text(found.title or "", found.date or "", found.text or "")
