"""Answers the requests of rendered pages through the node, for the configured kinds and hosts, within bounds.

A script or style that was fetched once is kept for the other pages of this node, so that a thousand pages of an
application load its bundle once. What several pages ask for at a time is fetched once.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from scrapy import Request

from bigcrawl.middlewares.page_requests import PageRequestRefusedError
from bigcrawl_rendering.interface import Answered, LoadRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy.http import Response

    from bigcrawl.middlewares.page_requests import PageTurn
    from bigcrawl_rendering.interface import Asked
    from bigcrawl_rendering.rules import BlockedHosts

KEPT_BYTES: Final = 64 << 20
KEPT_S: Final = 3_600.0
KEPT_KINDS: Final = frozenset({"script", "stylesheet", "font"})
BODY_BYTES_MAX: Final = 8 << 20
TIMEOUT_S: Final = 30.0
REDIRECTS_MAX: Final = 5
POST_BYTES_MAX: Final = 64 << 10

# What the node or the connection decides, and what would tell the pages of a crawl apart.
_NOT_FORWARDED: Final = ("sec-", "proxy-", "if-", "access-control-request-")
_NODES_OWN: Final = frozenset({
    "user-agent", "from", "host", "cookie", "accept-encoding", "connection", "content-length", "transfer-encoding",
    "upgrade-insecure-requests", "te", "keep-alive", "upgrade", "range", "cache-control", "pragma", "dnt",
})  # fmt: skip
# The body is unpacked, and no page gets cookies.
_NOT_ANSWERED: Final = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "set-cookie", "connection"}
)


class KeptAnswers:
    """A node's cached answers; the least recently used are dropped first."""

    def __init__(self, bytes_max: int = KEPT_BYTES, kept_s: float = KEPT_S) -> None:
        self._bytes_max = bytes_max
        self._kept_s = kept_s
        self._kept: OrderedDict[str, tuple[float, Answered]] = OrderedDict()
        self._size = 0
        self.under_way: dict[str, asyncio.Task[Answered]] = {}

    def get(self, key: str) -> Answered | None:
        found = self._kept.get(key)
        if found is None or found[0] < time.monotonic():
            return None
        self._kept.move_to_end(key)
        return found[1]

    def record_end(self, key: str, task: asyncio.Task[Answered]) -> None:
        """Cache the answer of a finished task, unless it is an error."""
        if self.under_way.get(key) is task:
            del self.under_way[key]
        if not task.cancelled() and task.exception() is None and task.result().status < 400:
            self.keep(key, task.result())

    def keep(self, key: str, answered: Answered) -> None:
        if before := self._kept.pop(key, None):
            self._size -= len(before[1].body)
        self._kept[key] = time.monotonic() + self._kept_s, answered
        self._size += len(answered.body)
        while self._size > self._bytes_max:
            self._size -= len(self._kept.popitem(last=False)[1][1].body)


class PageLoads:
    """The requests of one page.

    Attributes:
        counts: the number of requests by result: sent, kept, refused, failed, blocked.
        is_cut: whether the page asked for more than `requests_max`.
    """

    def __init__(
        self,
        turn: PageTurn,
        page: str,
        kept: KeptAnswers,
        kinds: Collection[str],
        blocked: BlockedHosts,
        requests_max: int,
    ) -> None:
        self._turn = turn
        self._page = page
        self._kept = kept
        self._kinds = kinds
        self._blocked = blocked
        self._requests_max = requests_max
        self._tasks: set[asyncio.Task[Answered]] = set()
        self._sent = 0
        self.counts: dict[str, int] = {}
        self.is_cut = False

    async def fetch(self, asked: Asked) -> Answered:
        try:
            return await self._fetch(asked)
        except LoadRefusedError as error:
            self._count(error.reason)
            raise

    async def end(self) -> None:
        """Let the page's requests end; unsent ones are refused."""
        await self._turn.end()

    async def _fetch(self, asked: Asked) -> Answered:
        url = asked.url.partition("#")[0]
        self._check(asked, url)
        is_kept = asked.kind in KEPT_KINDS and asked.method == "GET"
        key = f"{url} {asked.headers.get('origin', '')}"  # an answer may be for one origin alone
        if is_kept and (answered := self._kept.get(key)) is not None:
            self._count("kept")
            return answered
        if is_kept and (task := self._kept.under_way.get(key)) is not None:
            with suppress(LoadRefusedError):  # of the other page, whose turn may be over
                answered = await _wait_shielded(task)
                self._count("kept")
                return answered
        self._count_request(url)
        # A request that was begun ends, even if the page does not wait for it: its host is in use until then.
        task = asyncio.get_running_loop().create_task(self._send(asked, url))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        if not is_kept:
            return await _wait_shielded(task)
        self._kept.under_way[key] = task
        task.add_done_callback(lambda done: self._kept.record_end(key, done))
        return await _wait_shielded(task)

    def _check(self, asked: Asked, url: str) -> None:
        split = urlsplit(url)
        if split.scheme not in ("http", "https"):
            raise LoadRefusedError("blocked", f"{url} is no web address")
        if asked.kind not in self._kinds or (asked.method != "GET" and "post" not in self._kinds):
            raise LoadRefusedError(
                "blocked", f"{asked.method} of {url}, a {asked.kind}, is not in BIGCRAWL_RENDER_LOADS"
            )
        if self._blocked.has(split.hostname or ""):
            raise LoadRefusedError("blocked", f"{split.hostname} is in BIGCRAWL_RENDER_BLOCK")
        if len(asked.body) > POST_BYTES_MAX:
            raise LoadRefusedError("blocked", f"the request to {url} has a body of more than {POST_BYTES_MAX} bytes")

    async def _send(self, asked: Asked, url: str) -> Answered:
        headers = {
            name.lower(): value
            for name, value in asked.headers.items()
            if name.lower() not in _NODES_OWN and not name.lower().startswith(_NOT_FORWARDED)
        }
        headers.setdefault("referer", self._page)
        meta = {"download_maxsize": BODY_BYTES_MAX, "download_timeout": TIMEOUT_S}
        request = Request(url, method=asked.method, headers=headers, body=asked.body, meta=meta)
        for _ in range(REDIRECTS_MAX):
            response = await self._send_once(request)
            location = response.headers.get(b"Location") if 300 <= response.status < 400 else None
            if location is None:
                return _answered(response)
            target = urljoin(response.url, location.decode("latin-1")).partition("#")[0]
            self._check(asked, target)
            self._count_request(target)
            if urlsplit(target).netloc != urlsplit(request.url).netloc:
                headers.pop("authorization", None)
            method = "GET" if response.status == 303 else request.method
            request = request.replace(url=target, method=method, headers=headers)
        raise LoadRefusedError("failed", f"{url} redirects more than {REDIRECTS_MAX} times")

    def _count_request(self, url: str) -> None:
        if self._sent >= self._requests_max:
            self.is_cut = True
            raise LoadRefusedError("refused", f"the request to {url} exceeds BIGCRAWL_RENDER_REQUESTS")
        self._sent += 1

    async def _send_once(self, request: Request) -> Response:
        try:
            response = await self._turn.fetch(request)
        except PageRequestRefusedError as error:
            raise LoadRefusedError("refused", str(error)) from error
        except Exception as error:  # of any download handler
            raise LoadRefusedError("failed", f"{request.url}: {error!r}") from error
        self._count("sent")
        return response

    def _forget(self, task: asyncio.Task[Answered]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the page may have left before

    def _count(self, end: str) -> None:
        self.counts[end] = self.counts.get(end, 0) + 1


async def _wait_shielded(task: asyncio.Task[Answered]) -> Answered:
    """Wait for a task that several pages may share; a page that ends does not cancel it."""
    return await asyncio.shield(task)


def _answered(response: Response) -> Answered:
    headers: dict[str, str] = {}
    for name, values in response.headers.items():
        key = name.decode("latin-1").lower()
        if key not in _NOT_ANSWERED:
            headers[key] = ", ".join(value.decode("latin-1") for value in values)
    return Answered(response.url, response.status, headers, response.body)
