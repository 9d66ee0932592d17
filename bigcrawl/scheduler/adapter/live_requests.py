"""Requests that this process keeps as they are, because they hold values that cannot be stored.

The body of such a URL has the rest of its request, and a mark. The process that made the mark hands out the request
itself; any other process has the stored one. That one serves if what it lacks came after the hand-out: a middleware or
a handler added it, and can do so again. If the spider put it there, it is *needed*, and the request is lost.
"""

from __future__ import annotations

import logging
import os
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.scheduler.adapter.request_codec import (
    WHOLE,
    LostRequestError,
    Mark,
    decode_request,
    encode_request,
    is_method_of,
    without_transient,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request, Spider
    from scrapy.statscollectors import StatsCollector

    from bigcrawl.scheduler.adapter.values.codec import Values
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

logger = logging.getLogger(__name__)

REQUESTS_MAX: Final = 100_000
"""Of either kind. The oldest makes room: URLs that were seen before never come back for theirs."""
VALUE_BYTES: Final = 4_096  # of a value that may be left out of a request that has become too large


class LiveRequests:
    """The requests that a crawler keeps.

    Args:
        spider: the crawler's.
        values: packs their values.
        stats: count what is kept and lost.
        keeps: whether requests are kept whose spider put in what cannot be stored; they are refused otherwise.
    """

    def __init__(self, spider: Spider, values: Values, stats: StatsCollector, *, keeps: bool) -> None:
        self.spider = spider
        self._stats = stats
        self._keeps = keeps
        self._process = os.urandom(8)
        self._numbers = count()
        self._needed: BoundedDict[bytes, Request] = BoundedDict(REQUESTS_MAX)
        self._helpful: BoundedDict[bytes, Request] = BoundedDict(REQUESTS_MAX)
        self._given: dict[Request, bytes] = {}
        self.values = values

    def __repr__(self) -> str:
        return f"<LiveRequests needed={len(self._needed)} helpful={len(self._helpful)} given={len(self._given)}>"

    # --- to bytes

    def encode(self, request: Request, before: bytes | None = None, **how: Any) -> tuple[QueuedUrl, str]:
        """Do what `encode_request` does, and keep a request that cannot be stored whole.

        Args:
            request: any.
            before: the body of the URL in process that it tries again, or is redirected from.
            how: the other arguments of `encode_request`.

        Raises:
            UrlError: as `encode_request`.
            RequestNotStorableError: the same, of what the spider put in while such requests are not kept, and of
                anything else than meta, cb_kwargs and callbacks.
        """
        try:
            return encode_request(request, self.spider, values=self.values, **how)
        except RequestNotStorableError as error:
            if before is None and not self._keeps:
                raise
            stored, was_needed = self._before(before)
            rest = self._storable(request, stored, is_too_large=error.key_path == WHOLE)
        mark = Mark(self._process + next(self._numbers).to_bytes(8), stored is None or was_needed)
        encoded = encode_request(rest, self.spider, values=self.values, live=mark, **how)
        (self._needed if mark.is_needed else self._helpful).remember(mark.token, request)
        self._stats.inc_value("bigcrawl/memory/kept")
        return encoded

    def _before(self, body: bytes | None) -> tuple[Request | None, bool]:
        """Return the stored request of a body, and whether it lacks what is needed."""
        if body is None:
            return None, False
        try:
            return decode_request(body, self.spider, values=self.values), False
        except LostRequestError as error:
            return error.request, True

    def _storable(self, request: Request, stored: Request | None, *, is_too_large: bool) -> Request:
        """Return the request without what cannot be stored, or with what is stored in its place."""

        def is_storable(value: object, *, is_added: bool) -> bool:
            if self.values.culprit({"": value}, "") is not None:
                return False
            return not (is_added and is_too_large and len(self.values.packed(value)) > VALUE_BYTES)

        changed: dict[str, Any] = {}
        for name in ("meta", "cb_kwargs"):
            old = getattr(stored, name) if stored is not None else {}
            changed[name] = {
                key: value if is_storable(value, is_added=key not in old) else old[key]
                for key, value in getattr(request, name).items()
                if key in old or is_storable((key, value), is_added=True)
            }
        for name in ("callback", "errback"):
            function = getattr(request, name)
            if function is not None and not is_method_of(self.spider, function):
                changed[name] = getattr(stored, name, None)
        rest: Request = request.replace(**changed)
        return rest

    # --- from bytes

    def decode(self, body: bytes, instead_of: Callable[[str], str] = str) -> Request:
        """Do what `decode_request` does, and return the request itself if it is kept here.

        Raises:
            ValueError: as `decode_request`.
            LostRequestError: another process had it, or this one had no room left.
        """
        try:
            return decode_request(body, self.spider, instead_of, values=self.values, kept=self._give)
        except LostRequestError:
            self._stats.inc_value("bigcrawl/memory/lost")
            raise

    def _give(self, token: bytes, depth: int) -> Request | None:
        request = self._needed.get(token) or self._helpful.get(token)
        if request is not None:
            without_transient(request.meta)
            request.meta.setdefault("depth", depth)
            self._given[request] = token
        return request

    def end(self, request: Request, *, comes_back: bool) -> None:
        """The engine is done with a request: forget it, unless its URL comes back as it is."""
        token = self._given.pop(request, None)
        if token is not None and not comes_back:
            self._needed.pop(token, None)
            self._helpful.pop(token, None)

    def close(self) -> None:
        """Log how many requests end with this process."""
        if self._needed:
            logger.warning(
                "%(count)d requests were kept in memory, because they hold what cannot be stored, and end with this "
                "process; the next one counts them as lost and calls their errbacks",
                {"count": len(self._needed)},
            )
