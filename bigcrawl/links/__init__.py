"""Extracts the links of a page, joined and canonical, as one batch.

    def parse(self, response):
        yield Links.from_page(response)

As Requests, a page's 60 links would cost more than fetching and parsing it; as a `Links` they cost 0.1 ms on top of the
parsing. Ordinary Requests work too, in addition or instead.

    batch      the spider's output: `Links`
    page       reads a page
    tags       its tags
    embedded   embedded elements, read on request
    directory  listings of directories
    refresh    its refresh to another URL
    encoding   how to read its bytes
    limits     how much of it is read

`Links` is imported by the spiders that use it. The frontier knows it as a `LinkBatch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.links.embedded import ELEMENT, PAGE_PART
from bigcrawl.links.encoding import Page
from bigcrawl.links.limits import NOTHING_LEFT_OUT, LeftOut, PageLimits, set_page_limits
from bigcrawl.links.page import (
    ANCHORS_MAX,
    TEXT_CHARS_MAX,
    PageLinks,
    decoded_start,
    extract_links,
    page_text,
    page_title,
    read_page,
)
from bigcrawl.links.refresh import header_links, refresh_of
from bigcrawl.links.tags import LINK_ATTRIBUTES, METAS_MAX, ON_REQUEST

if TYPE_CHECKING:
    from bigcrawl.links.batch import Links
else:

    def __getattr__(name: str) -> object:
        if name != "Links":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from bigcrawl.links.batch import Links

        return Links


__all__ = [
    "ANCHORS_MAX",
    "ELEMENT",
    "LINK_ATTRIBUTES",
    "METAS_MAX",
    "NOTHING_LEFT_OUT",
    "ON_REQUEST",
    "PAGE_PART",
    "TEXT_CHARS_MAX",
    "LeftOut",
    "Links",
    "Page",
    "PageLimits",
    "PageLinks",
    "decoded_start",
    "extract_links",
    "header_links",
    "page_text",
    "page_title",
    "read_page",
    "refresh_of",
    "set_page_limits",
]
