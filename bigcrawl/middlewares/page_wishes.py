"""What one page asks of us, found out once for all that its callback yields; nearly always nothing.

`Links` bring what stands on the page. A plain Request brings only its URL, so for the first of them the page is read
here: the Request is left out if its URL is one of the page's links and the page asks not to follow that one. What a
spider makes up by itself (a search, a POST, an API's URL) is no link of the page and goes its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import TextResponse

from bigcrawl.directives import NOFOLLOW, wishes
from bigcrawl.links import read_page
from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from bigcrawl.links import Links, PageLinks

_TAG, _LINK = b"X-Robots-Tag", b"Link"


class PageWishes:
    """Of one response.

    Cost: under a microsecond for a page that asks for nothing; 0.15 ms where a plain Request is yielded.
    """

    __slots__ = ("_agent", "_closed", "_response", "_words", "page_canonical")

    def __init__(self, agent: str, response: Response) -> None:
        self._agent = agent
        self._response = response
        # The dict below Scrapy's class: names are spelled as it spells them already.
        tags: list[bytes] | None = dict.get(response.headers, _TAG)
        self._words = wishes(agent, tags, ()) if tags else frozenset()
        self._closed: frozenset[str] | None = None
        self.page_canonical = _canonical_in(dict.get(response.headers, _LINK))

    def note(self, links: Links | PageLinks) -> None:
        """Take what a batch of the page's links brings."""
        if links.metas:
            self._words |= wishes(self._agent, (), links.metas)
        if links.page_canonical and not self.page_canonical:
            self.page_canonical = links.page_canonical

    @property
    def closes_all(self) -> bool:
        """Whether no link of the page is to be followed."""
        return NOFOLLOW in self._words

    def closes(self, request: Request) -> bool:
        """Whether a request follows a link that is not to be followed."""
        if request.method != "GET":
            return False
        if self._closed is None:
            self._closed = self._read()
        if not self._closed:
            return False
        try:
            return canonicalize(request.url, 1 << 20) in self._closed
        except UrlError:
            return False

    @property
    def is_noteworthy(self) -> bool:
        """Whether the page asks for anything, or calls itself by another URL than the one it was fetched by."""
        return bool(self._words) or self.page_canonical not in (None, self._response.url)

    def fields(self) -> dict[str, str]:
        """What is to be kept beside the page."""
        fields = {}
        if self._words:
            fields["robots"] = ", ".join(sorted(self._words))
        if self.page_canonical not in (None, self._response.url):
            fields["canonical"] = str(self.page_canonical)
        return fields

    def _read(self) -> frozenset[str]:
        """Read the page for its links; return those that are not to be followed."""
        if not isinstance(self._response, TextResponse):
            return frozenset()
        found = read_page(self._response)
        self.note(found)
        return frozenset((*found.urls, *found.nofollow) if self.closes_all else found.nofollow)


def _canonical_in(headers: Any) -> str | None:
    """The target of a Link header that says `rel="canonical"` (RFC 6596), where it is absolute."""
    if not headers:
        return None
    for header in headers:
        for part in header.decode("latin-1").split(","):
            target, _, parameters = part.strip().partition(">")
            said = parameters.lower().replace('"', "").replace(" ", "").split(";")
            if target.startswith("<") and "rel=canonical" in said:
                try:
                    return canonicalize(target[1:], 1 << 16)
                except UrlError:
                    return None
    return None
