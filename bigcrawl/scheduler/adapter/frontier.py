"""What Scrapy's components ask of the frontier, and tell it; `scheduler.scheduler.Scheduler` is the one there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from scrapy import Request, Spider
    from scrapy.http import Response

    from bigcrawl.config import Config
    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.links import Links
    from bigcrawl.politeness.addresses import AddressGuard
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.node import Node


class Frontier(Protocol):
    """A crawler's frontier.

    Attributes:
        config: the settings.
        guard: which addresses are closed.
        node: this process in the crawl; None until it has joined.
        last_survey: the last look at the whole crawl; None before the first.
    """

    config: Config
    guard: AddressGuard
    node: Node | None
    last_survey: Survey | None

    @property
    def is_resumed(self) -> bool:
        """Whether the crawl was begun before this process joined it."""

    def fail(self, error: BigcrawlError) -> None:
        """End the crawl because of an error that waiting will not mend: one line, and exit status 1."""

    def offer_links(self, links: Links, urls: Iterable[str], depth: int, page: str = "") -> int:
        """Take a batch of canonical URLs, found on a page if any; return how many were not sent just before."""

    def note_start_request(self, request: Request) -> None:
        """The next time this request is enqueued it is a start request: seen-checked whatever it says."""

    def note_found(self, request: Request, page: str) -> None:
        """A callback made this request of a page: the next time it is enqueued it is a link from there."""

    def tell_sitemaps(self, tell: Callable[[str, list[str]], Awaitable[None]]) -> None:
        """Have `tell` called with each robots.txt that is fetched and names sitemaps, and with their URLs."""

    async def wait_for_room(self) -> None:
        """Wait while the outbox is full; not while the spider closes, whose links must not be refused."""

    async def claim_start(self, spider: Spider) -> bool:
        """Wait until the start requests are this node's (True) or done by another or an earlier one (False)."""

    async def end_start(self) -> None:
        """All start requests are offered: say so to the crawl once they are in the inboxes."""

    async def give_up_start(self) -> None:
        """The spider's `start` failed: leave its requests to the next run, and do not wait for them in this one."""

    def is_handed_out(self, request: Request) -> bool:
        """Whether a request came from the frontier, and so has its host's turn."""

    def may_send(self, request: Request) -> bool:
        """Whether a request may be put on the wire now; it is asked at the last moment."""

    def is_bound(self, request: Request) -> bool:
        """Whether a request has to be given up when the lease is over."""

    def address_of(self, request: Request) -> str:
        """The address that was checked for a handed-out request; empty for any other, even one made from it."""

    def refusal_of(self, request: Request) -> Exception | None:
        """Why a handed-out request must not be fetched; None when it may."""

    def note_response(self, request: Request, response: Response, download_ms: int) -> None:
        """A handed-out request was answered."""

    def note_running(self, request: Request | None) -> None:
        """The page of a request is with the spider now, should it stay there. Cost: 0.2 us."""

    def was_answered(self, request: Request) -> bool:
        """Whether a handed-out request has an answer, one that could be used."""

    def note_received(self, request: Request, response: Response) -> None:
        """A handed-out request has a response, maybe one that a middleware had: Scrapy's HTTP cache, for instance."""

    def note_too_large(self, request: Request) -> None:
        """The body of a handed-out request's answer is not unpacked: no spider sees it."""

    def note_failure(self, request: Request, error: BaseException, download_ms: int) -> None:
        """A handed-out request got no answer."""
