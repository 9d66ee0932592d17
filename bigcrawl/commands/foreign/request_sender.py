"""Sends imported requests to the inboxes, and records those that cannot be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import encode_stored, links_encoder
from bigcrawl.scheduler.records.url_traits import traits_of
from bigcrawl.url.canonical import UrlError, host_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from bigcrawl.views.opened_crawl import OpenedCrawl

BAD_SHOWN: Final = 5
_SCRAPYS: Final = "scrapy."


class NotImported(NamedTuple):
    """An item that is not imported, and why."""

    where: str
    reason: str


class RequestSender:
    """The sender of one import. Methods that send raise TransientStoreError if Redis does not answer.

    Attributes:
        bad: the first items that were left out.
        notes: warnings about possible refetches.
    """

    def __init__(self, crawl: OpenedCrawl, request_classes: Collection[str] = ()) -> None:
        """`request_classes` are permitted classes of requests, besides Scrapy's own."""
        self._crawl = crawl
        self._inboxes = InboxSender(crawl, "import")
        self._traits = traits_of(crawl.config)
        self._classes = request_classes
        self.sent = 0
        self.bad: list[NotImported] = []
        self.left_out = 0
        self.notes: list[str] = []

    def __repr__(self) -> str:
        return f"<RequestSender sent={self.sent} left_out={self.left_out}>"

    async def send_request(self, where: str, fields: dict[str, Any], entry: str = "") -> bool:
        """Send a request that `Request.to_dict` made. Return False, and record it, if that fails.

        A request with `dont_filter` is queued even if its URL was seen, but once for each `entry`.
        """
        name = fields.get("_class")
        if isinstance(name, str) and not name.startswith(_SCRAPYS) and name not in self._classes:
            self.leave_out(where, f"it is a {name[:100]}: allow that with --request-class {name[:100]}")
            return False
        try:
            url, canonical = encode_stored(
                fields,
                key_of=self._crawl.url_keys.of_request,
                url_bytes_max=self._crawl.config.frontier.url_bytes_max,
                traits=self._traits,
                entry=entry,
            )
        except (UrlError, RequestNotStorableError, ValueError, OverflowError) as error:
            self.leave_out(where, str(error))
            return False
        await self._inboxes.add(self._partition_of(canonical), url)
        self.sent += 1
        return True

    async def send_url(self, where: str, url: str, priority: int = 0, callback: str | None = None) -> bool:
        """Send a URL. Return False, and record it, if that fails."""
        try:
            place = self._crawl.place_of(url)
            queued = links_encoder(Links([place.url], priority=priority, callback=callback), 0, self._traits)
        except (UrlError, RequestNotStorableError, ValueError) as error:
            self.leave_out(where, str(error))
            return False
        await self._inboxes.add(place.partition, queued(place.key, place.url))
        self.sent += 1
        return True

    def leave_out(self, where: str, reason: str) -> None:
        self.left_out += 1
        if len(self.bad) < BAD_SHOWN:
            self.bad.append(NotImported(where, reason[:300]))

    async def flush(self) -> None:
        await self._inboxes.flush()

    def lines(self) -> list[str]:
        more = self.left_out - len(self.bad)
        shown = [f"left out: {where}: {reason}" for where, reason in self.bad]
        return shown + ([f"and {more:,} more"] if more else [])

    def _partition_of(self, canonical: str) -> int:
        pld = self._crawl.suffixes.pld(host_of(canonical))
        return self._crawl.url_keys.partition_of(pld, self._crawl.partitions)
