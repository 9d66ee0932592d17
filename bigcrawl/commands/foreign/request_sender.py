"""Sends what another crawler left to the inboxes, and notes what cannot be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import encode_stored, links_encoder
from bigcrawl.url.canonical import UrlError, host_of
from bigcrawl.url.shape import Shapes

if TYPE_CHECKING:
    from collections.abc import Collection

    from bigcrawl.commands.opened_crawl import OpenedCrawl

BAD_SHOWN: Final = 5
_SCRAPYS: Final = "scrapy."


class NotImported(NamedTuple):
    """Something that is not imported, and why."""

    where: str
    reason: str


class RequestSender:
    """The sender of one import. All methods that send raise TransientStoreError if Redis does not answer.

    Attributes:
        sent: URLs that were sent.
        bad: the first that were not.
        left_out: how many were not.
        notes: lines about what may be fetched again, although all is in.
    """

    def __init__(self, crawl: OpenedCrawl, request_classes: Collection[str] = ()) -> None:
        """`request_classes` are classes of requests, besides Scrapy's own, that may be made when they are fetched."""
        self._crawl = crawl
        self._inboxes = InboxSender(crawl, "import")
        self._marks = Shapes(crawl.config.traps).marks if crawl.config.traps.share else None
        self._classes = request_classes
        self.sent = 0
        self.bad: list[NotImported] = []
        self.left_out = 0
        self.notes: list[str] = []

    def __repr__(self) -> str:
        return f"<RequestSender sent={self.sent} left_out={self.left_out}>"

    async def send_request(self, where: str, fields: dict[str, Any], entry: str = "") -> bool:
        """Send a request that `Request.to_dict` made. Return whether it could be; if not, it is noted.

        `entry` identifies it if it has `dont_filter`: it is queued whatever was seen, but once for each entry.
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
                marks=self._marks,
                entry=entry,
            )
        except (UrlError, RequestNotStorableError, ValueError, OverflowError) as error:
            self.leave_out(where, str(error))
            return False
        await self._inboxes.add(self._partition_of(canonical), url)
        self.sent += 1
        return True

    async def send_url(self, where: str, url: str, priority: int = 0, callback: str | None = None) -> bool:
        """Send a URL. Return whether it could be; if not, it is noted."""
        try:
            place = self._crawl.place_of(url)
            queued = links_encoder(Links([place.url], priority=priority, callback=callback), 0, self._marks)
        except (UrlError, RequestNotStorableError, ValueError) as error:
            self.leave_out(where, str(error))
            return False
        await self._inboxes.add(place.partition, queued(place.key, place.url))
        self.sent += 1
        return True

    def leave_out(self, where: str, reason: str) -> None:
        """Note something that is not imported."""
        self.left_out += 1
        if len(self.bad) < BAD_SHOWN:
            self.bad.append(NotImported(where, reason[:300]))

    async def flush(self) -> None:
        """Send all that is left."""
        await self._inboxes.flush()

    def lines(self) -> list[str]:
        """What was left out, as lines of a text."""
        more = self.left_out - len(self.bad)
        shown = [f"left out: {where}: {reason}" for where, reason in self.bad]
        return shown + ([f"and {more:,} more"] if more else [])

    def _partition_of(self, canonical: str) -> int:
        pld = self._crawl.suffixes.pld(host_of(canonical))
        return self._crawl.url_keys.partition_of(pld, self._crawl.partitions)
