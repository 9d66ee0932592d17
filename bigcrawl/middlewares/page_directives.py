"""The robots directives of one page, applied to all output of its callback.

`Links` carry the directives. The first plain Request makes this module read the page; only a Request that follows a
nofollow link of the page is dropped, not a URL that the spider builds itself (a search, a POST).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.http import TextResponse

from bigcrawl.links import read_page
from bigcrawl.links.directives import NOFOLLOW, directives_for
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import url_in

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from bigcrawl.links import Links, PageLinks

_TAG, _LINK = b"X-Robots-Tag", b"Link"
# RFC 8288, appendix B: targets and quoted parameters may contain commas; the first `rel` counts.
_links_in = re.compile(rb'<([^<>]*+)>((?:[^,"<]|"[^"]*+"?+)*+)').findall
_parameters_in = re.compile(rb';[ \t]*+([^=;"\s]*+)[ \t]*+(?:=[ \t]*+(?:"([^"]*+)"?+|([^;]*+)))?+').findall


class PageDirectives:
    __slots__ = ("_agent", "_closed", "_response", "_words", "page_canonical")

    def __init__(self, agent: str, response: Response) -> None:
        self._agent = agent
        self._response = response
        # dict.get skips Scrapy's slow normalisation; both names are normalised already.
        tags: list[bytes] | None = dict.get(response.headers, _TAG)
        self._words = directives_for(agent, tags, ()) if tags else frozenset()
        self._closed: frozenset[str] | None = None
        links = dict.get(response.headers, _LINK)
        self.page_canonical = _canonical_in(links, response.url) if links else None

    def record_links(self, links: Links | PageLinks) -> None:
        if links.metas:
            self._words |= directives_for(self._agent, (), links.metas)
        if links.page_canonical and not self.page_canonical:
            self.page_canonical = links.page_canonical

    @property
    def closes_all(self) -> bool:
        return NOFOLLOW in self._words

    def forbids_request(self, request: Request) -> bool:
        if request.method != "GET":
            return False
        if self._closed is None:
            self._closed = self._read_forbidden()
        if not self._closed:
            return False
        try:
            return canonicalize(request.url, 1 << 20) in self._closed
        except UrlError:
            return False

    @property
    def is_noteworthy(self) -> bool:
        """Whether the page has robots directives, or names another URL as its canonical one."""
        return bool(self._words) or self.page_canonical not in (None, self._response.url)

    def fields(self) -> dict[str, str]:
        fields = {}
        if self._words:
            fields["robots"] = ", ".join(sorted(self._words))
        if self.page_canonical not in (None, self._response.url):
            fields["canonical"] = str(self.page_canonical)
        return fields

    def _read_forbidden(self) -> frozenset[str]:
        if not isinstance(self._response, TextResponse):
            return frozenset()
        found = read_page(self._response)
        self.record_links(found)
        return frozenset((*found.urls, *found.nofollow) if self.closes_all else found.nofollow)


def _canonical_in(headers: list[bytes], page_url: str) -> str | None:
    for target, parameters in _links_in(b",".join(headers)):
        relations = next(
            (quoted or bare for name, quoted, bare in _parameters_in(parameters) if name.lower() == b"rel"), b""
        )
        if b"canonical" in relations.lower().split():
            return url_in([target], page_url)
    return None
