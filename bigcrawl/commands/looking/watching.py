"""Looks at a crawl again and again, as `scrapy frontier top` does, with as little work for Redis as its state allows.

The status is read in each round. What fails, and which hosts have most URLs waiting, costs more and changes slowly. So
it is read beside the rounds, and rests for `ASIDE_SHARE` times as long as it took.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.commands.looking.errors import by_reason, read_errors
from bigcrawl.commands.looking.hosts import Wanted, list_hosts
from bigcrawl.commands.looking.status import status_of
from bigcrawl.exceptions import BigcrawlError, RewoundError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl

RATE_S: Final = 10.0
"""Rates are means over this time."""

ASIDE_S: Final = 10.0
ASIDE_SHARE: Final = 20
HOSTS: Final = 20  # that are listed
HOSTS_WALKED: Final = 10_000  # the ones that are due first, of which those with most URLs are listed
PLDS: Final = 1  # of each reason


class Seen(NamedTuple):
    """What was read of a crawl.

    Attributes:
        status: as `read_status` returns it; None before the first answer.
        rates: bytes, new, errors and dropped URLs a second; empty before there are two looks.
        hosts: as `list_hosts` returns them, those with most URLs waiting first; None before they were read.
        errors: by reason, as `by_reason` returns them.
        trouble: why `status` is old; empty if it is not.
        silent_s: how long Redis has not answered.
    """

    status: dict[str, Any] | None = None
    rates: Mapping[str, float] = MappingProxyType({})
    hosts: dict[str, Any] | None = None
    errors: Sequence[dict[str, Any]] = ()
    trouble: str = ""
    silent_s: float = 0.0


class Watching:
    """Reads one crawl; not for two tasks at once."""

    def __init__(self, crawl: OpenedCrawl) -> None:
        self._crawl = crawl
        self._seen = Seen()
        self._totals: deque[tuple[float, dict[str, int]]] = deque()
        self._answered_s = time.monotonic()
        self._aside: asyncio.Task[None] | None = None
        self._aside_due_s = 0.0

    def __repr__(self) -> str:
        return f"<Watching {self._crawl!r}>"

    @property
    def seen(self) -> Seen:
        """What was seen last."""
        return self._seen

    async def look(self, *, is_only: bool = False) -> Seen:
        """Look at the crawl. While Redis is away, return what was seen last, and why it is old.

        Args:
            is_only: wait for what is otherwise read beside the rounds. Then an error is raised.

        Raises:
            TransientStoreError: Redis does not answer, and this is the only look.
        """
        try:
            status = await status_of(self._crawl)
            if is_only:
                await self._look_aside()
        except TransientStoreError as error:
            if is_only:
                raise
            if isinstance(error, RewoundError):  # another process of it; a command has nothing to compare with it
                with suppress(TransientStoreError):
                    await self._crawl.client.accept_restart()
            silent_s = time.monotonic() - self._answered_s
            self._seen = self._seen._replace(trouble=str(error), silent_s=silent_s)
            return self._seen
        self._answered_s = time.monotonic()
        self._seen = self._seen._replace(status=status, rates=self._rates(status), trouble="", silent_s=0.0)
        if not is_only and self._aside is None and time.monotonic() >= self._aside_due_s:
            self._aside = asyncio.create_task(self._look_aside())
        return self._seen

    async def close(self) -> None:
        """Stop reading."""
        if self._aside is not None:
            self._aside.cancel()
            await asyncio.gather(self._aside, return_exceptions=True)

    async def _look_aside(self) -> None:
        since_s = time.monotonic()
        try:
            errors = by_reason(await read_errors(self._crawl), PLDS)
            hosts = await list_hosts(self._crawl, Wanted("", "", "waiting", 0, HOSTS), HOSTS_WALKED)
            self._seen = self._seen._replace(errors=errors, hosts=hosts)
        except BigcrawlError:
            if self._aside is None:
                raise  # the caller waits for it
        finally:
            ended_s = time.monotonic()
            self._aside, self._aside_due_s = None, ended_s + max(ASIDE_S, ASIDE_SHARE * (ended_s - since_s))

    def _rates(self, status: Mapping[str, Any]) -> dict[str, float]:
        now_s, totals = time.monotonic(), totals_of(status)
        self._totals.append((now_s, totals))
        while len(self._totals) > 2 and self._totals[1][0] <= now_s - RATE_S:
            self._totals.popleft()
        since_s, before = self._totals[0]
        if now_s <= since_s:
            return {}
        return {name: (total - before[name]) / (now_s - since_s) for name, total in totals.items()}


def totals_of(status: Mapping[str, Any]) -> dict[str, int]:
    """Return the totals whose growth is shown: bytes, new URLs, errors and dropped URLs."""

    def below(prefix: str) -> int:
        return sum(count for name, count in status["outcomes"].items() if name.startswith(prefix))

    return {
        "bytes": status["bytes"],
        "new": status["urls"]["seen"],
        "errors": below("error:"),
        "dropped": below("dropped:"),
    }
