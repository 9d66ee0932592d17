"""The interface of a renderer, so that another service can replace the default one.

BIGCRAWL_RENDERER = "myproject.rendering.MyRenderer"
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.crawler import Crawler


class RawPage(NamedTuple):
    """The answer to a page's own request; `body` is unpacked, and `headers` have names in lower case."""

    url: str
    body: bytes
    headers: Mapping[str, str]


class Asked(NamedTuple):
    """A request of a page's scripts or elements. `kind` is one of BIGCRAWL_RENDER_LOADS."""

    url: str
    kind: str
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Answered(NamedTuple):
    """The answer to a page's request; `url` is the final one after redirects."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class LoadRefusedError(Exception):
    """A request of a page is not answered; `reason` is refused, failed or blocked."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Loads(Protocol):
    """Answers a page's requests politely; a renderer has no other access to the network."""

    async def fetch(self, asked: Asked) -> Answered:
        """Raise LoadRefusedError if there is no answer."""


@dataclass(slots=True)
class Rendered:
    """A page after its scripts.

    Attributes:
        html: its document, with shadow trees in the place of their hosts' content.
        links: URLs that it leads to besides those of its elements: addresses that scripts set, pages that scripts went
            to, and links that were there for a while.
        is_cut: whether its time or its requests ran out.
        by: the renderer and its version.
    """

    html: str
    links: list[str] = field(default_factory=list)
    is_cut: bool = False
    by: str = ""


class PageSuspectError(Exception):
    """A page was in a browser that died or hung; it may be tried again, alone in a browser."""

    def __init__(self, message: str, *, hangs: bool = False, needs_kill: bool = False) -> None:
        super().__init__(message)
        self.hangs = hangs
        self.needs_kill = needs_kill


class Renderer(Protocol):
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self: ...

    async def render(self, page: RawPage, loads: Loads, *, alone: bool = False) -> Rendered:
        """Render a page, within its own bounds of time and memory. It may be cancelled.

        Args:
            page: as it was fetched; the renderer does not ask for it again.
            loads: answers the page's requests.
            alone: whether nothing else may share the page's browser.

        Raises:
            PageSuspectError: the browser died or hung while it had the page.
        """

    async def close(self) -> None:
        """End all of the renderer's processes."""
