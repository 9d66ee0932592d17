"""Sends the entries of another crawler's queue: pickled requests, one after the other."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final, Self

from bigcrawl.commands.foreign.pickled_requests import PickledRequests, UnreadableError
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from bigcrawl.commands.foreign.fingerprint_set import FetchedPrints
    from bigcrawl.commands.foreign.request_sender import RequestSender
    from bigcrawl.commands.opened_crawl import OpenedCrawl

ENTRY_BYTES_MAX: Final = 4 << 20  # what a stored request may have


class StoredQueue:
    """Takes the entries of a queue. Use it in a `with` statement, because it has a process.

    Args:
        kind: begins the names by which requests with `dont_filter` are told apart.
        sender: of the import.
        fetched: learns of requests that wait.
    """

    def __init__(self, kind: str, sender: RequestSender, fetched: FetchedPrints) -> None:
        self._kind = kind
        self._sender = sender
        self._fetched = fetched
        self._requests = PickledRequests()

    def __repr__(self) -> str:
        return f"<StoredQueue {self._kind} {self._sender!r}>"

    def __enter__(self) -> Self:
        self._requests.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._requests.__exit__(*error)

    async def send(self, where: str, entry: bytes | int) -> None:
        """Send an entry, or note that it is left out. An integer is the size of one that is too large.

        Raises:
            TransientStoreError: Redis does not answer.
        """
        if isinstance(entry, int):
            self._sender.leave_out(where, f"it has {entry:,} bytes; {ENTRY_BYTES_MAX:,} may be")
            return
        try:
            fields = await asyncio.to_thread(self._requests.read, entry)
        except UnreadableError as error:
            self._sender.leave_out(where, str(error))
            return
        name = f"{self._kind}:{hashlib.sha1(entry, usedforsecurity=False).hexdigest()}"
        await self._sender.send_request(where, fields, name)
        if not fields.get("dont_filter"):  # one that is left out has not been fetched either
            self._fetched.note_waiting(fields)


async def require_stopped(crawl: OpenedCrawl) -> None:
    """Refuse a crawl that is running: its nodes would fetch again what they do not know yet.

    Raises:
        ConfigError: it is.
    """
    if await crawl.nodes():
        raise ConfigError(f"crawl {crawl.config.crawl.name!r} is running: stop it, import, and start it again")
