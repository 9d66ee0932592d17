"""Failures on this node by reason and PLD, for `scrapy frontier errors` alone; losing some is harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.scripts import ANSWERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.records.held import HeldUrl

SEND_MS: Final = 5_000
WAITING_MAX: Final = 500
KEPT_MAX: Final = 2_000
URL_CHARACTERS: Final = 500
OTHERS: Final = "(others)"
FAILED: Final = ("error:", "dropped:", "status:4", "status:5", "retried:")


class Failed(NamedTuple):
    fetches: int
    url: str


class FailedFetches:
    def __init__(self, client: RedisClient, clock: Clock, crawl: str, pld_of: Callable[[str], str]) -> None:
        self._client = client
        self._clock = clock
        self._keys = CrawlKeys(crawl)
        self._pld_of = pld_of
        self._waiting: dict[tuple[str, str], Failed] = {}
        self._sent_ms = 0

    def __repr__(self) -> str:
        return f"<FailedFetches waiting={len(self._waiting)}>"

    def note(self, held: HeldUrl) -> None:
        assert held.end is not None, "an ended URL has an end"
        if held.end.counter.startswith(FAILED):
            reason = held.end.counter.removeprefix("retried:")
        elif held.robots_failure:
            reason = f"robots.txt {held.robots_failure}"
        elif held.host_report not in ("", ANSWERS):
            reason = held.host_report
        else:
            return
        row = (reason, self._pld_of(held.host))
        if row not in self._waiting and len(self._waiting) >= WAITING_MAX:
            row = (reason, OTHERS)
        before = self._waiting.get(row)
        self._waiting[row] = Failed(before.fetches + 1 if before else 1, held.url[:URL_CHARACTERS])

    async def send_if_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._waiting and now_ms - self._sent_ms >= SEND_MS:
            self._sent_ms = now_ms
            await self.send()

    async def send(self) -> None:
        if not self._waiting:
            return
        sent, self._waiting = self._waiting, {}
        rows = [(f"{reason}\n{pld}", failed.fetches, failed.url) for (reason, pld), failed in sent.items()]
        try:
            await self._client.run([scripts.record_errors(self._keys, rows, KEPT_MAX)])
        except RedisRefusedError:
            return
        except BaseException:
            self._take_back(sent)
            raise

    def _take_back(self, sent: dict[tuple[str, str], Failed]) -> None:
        for row, failed in sent.items():
            later = self._waiting.get(row)
            if later is not None:
                self._waiting[row] = Failed(failed.fetches + later.fetches, later.url)
            elif len(self._waiting) < WAITING_MAX:
                self._waiting[row] = failed
