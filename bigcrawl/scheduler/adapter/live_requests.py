"""Requests that this process keeps in memory because some of their values cannot be stored.

The URL's body has the rest and a mark. In another process, the rest suffices if middlewares or handlers add the missing
values again. If the spider set one, the kept request is *needed*: without it, the request is lost.
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

    from bigcrawl.scheduler.adapter.values.codec import ValueCodec
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

logger = logging.getLogger(__name__)

REQUESTS_MAX: Final = 100_000
"""Beyond this, the oldest request is dropped: one whose URL was already seen is never asked for."""
LARGE_MAX: Final = 16
VALUE_BYTES: Final = 4_096  # larger values are left out of a request that is too large


class LiveRequests:
    """The requests that a crawler keeps in memory; `keeps` says whether the spider may set unstorable values."""

    def __init__(
        self,
        spider: Spider,
        values: ValueCodec,
        stats: StatsCollector,
        *,
        keeps: bool,
        instead_of: Callable[[str], str] = str,
    ) -> None:
        self.spider = spider
        self._instead_of = instead_of
        self._stats = stats
        self._keeps = keeps
        self._process = os.urandom(8)
        self._numbers = count()
        self._needed: BoundedDict[bytes, Request] = BoundedDict(REQUESTS_MAX)
        self._helpful: BoundedDict[bytes, Request] = BoundedDict(REQUESTS_MAX)
        self._large: BoundedDict[bytes, Request] = BoundedDict(LARGE_MAX)
        self._given: dict[Request, bytes] = {}
        self.values = values

    def __repr__(self) -> str:
        kept = f"needed={len(self._needed)} helpful={len(self._helpful)} large={len(self._large)}"
        return f"<LiveRequests {kept} given={len(self._given)}>"

    def encode(self, request: Request, before: bytes | None = None, **how: Any) -> tuple[QueuedUrl, str]:
        """Encode a request, and keep it if it cannot be stored whole.

        `before` is the body of the URL in process that the request retries, or was redirected from.

        Raises:
            RequestNotStorableError: a value from the spider is too large or not allowed by `keeps`.
        """
        try:
            return encode_request(request, self.spider, values=self.values, **how)
        except RequestNotStorableError as error:
            is_too_large = error.key_path == WHOLE
            if before is None and (is_too_large or not self._keeps):
                raise
            stored, was_needed = self._stored_before(before)
            rest = self._storable_part(request, stored, is_too_large=is_too_large)
        mark = Mark(self._process + next(self._numbers).to_bytes(8), before is None or was_needed)
        encoded = encode_request(rest, self.spider, values=self.values, live=mark, **how)
        kept = self._large if is_too_large else self._needed if mark.is_needed else self._helpful
        kept.remember(mark.token, request)
        self._stats.inc_value("bigcrawl/memory/kept")
        return encoded

    def _stored_before(self, body: bytes | None) -> tuple[Request | None, bool]:
        if body is None:
            return None, False
        try:
            return decode_request(body, self.spider, self._instead_of, values=self.values), False
        except LostRequestError as error:
            return error.request, True

    def _storable_part(self, request: Request, stored: Request | None, *, is_too_large: bool) -> Request:
        def is_storable(value: object, *, is_added: bool) -> bool:
            try:
                size = len(self.values.pack(value))
            except Exception:  # noqa: BLE001 - of the value itself, or of a function that the project names
                return False
            return not (is_added and is_too_large and size > VALUE_BYTES)

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
            if function is not None and not is_method_of(self.spider, function, self.values):
                changed[name] = getattr(stored, name, None)
        rest: Request = request.replace(**changed)
        return rest

    def decode(self, body: bytes) -> Request:
        """Decode a body; if its request is kept here, return a copy of that. Raises LostRequestError."""
        try:
            return decode_request(body, self.spider, self._instead_of, values=self.values, kept=self._kept_request)
        except LostRequestError:
            self._stats.inc_value("bigcrawl/memory/lost")
            raise

    def _kept_request(self, token: bytes, depth: int) -> Request | None:
        places = (self._needed, self._helpful, self._large)
        kept = next((place[token] for place in places if token in place), None)
        if kept is None:
            return None
        request = kept.copy()  # the engine may still have the one that a middleware has returned
        without_transient(request.meta)
        request.meta.setdefault("depth", depth)
        self._given[request] = token
        return request

    def end(self, request: Request, *, comes_back: bool) -> None:
        token = self._given.pop(request, None)
        if token is not None and not comes_back:
            for kept in (self._needed, self._helpful, self._large):
                kept.pop(token, None)

    def close(self) -> None:
        if self._needed:
            logger.warning(
                "%(count)d requests were kept in memory, because they hold unstorable values, so they are lost when "
                "this process ends; the next process counts them as lost and calls their errbacks",
                {"count": len(self._needed)},
            )
