"""Decides whether and when a taken URL may be fetched (step 10 of a URL's life), by these checks.

    0 blacklist  covered: the URL goes back to disk while it is covered; at 3 the same for a covered address
      elsewhere  fetched by the crawler from which the crawl was imported: the URL ends
    1 rules      unknown: robots.txt is fetched in the URL's place, and the URL returns to its queue
    2 allowed?   forbidden: the URL ends, is counted, and its host's URLs in Redis are swept
      head       required: a HEAD is sent in the URL's place, and the URL returns to its queue, or ends
    3 address    refused, or no such name: the URL ends, and its host's URLs in Redis too; unknown: tried again later;
                 another crawl has the host: the URL returns
    4 gates      its spaces and its server grant a start; if that is far ahead, the URL returns until then
    5 due        it waits here, at most a second, so that a host that must wait holds no fetch slot; if no gate has
                 granted its start, the last `EARLY_MS` in the downloader, so that the hand-out does not delay it

Most URLs wait for none of these.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.gates.interfaces import Closed, Outlet, SetsAside, Sweeps
from bigcrawl.scheduler.records.body import is_seed
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.outcomes import OWN_ERROR

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from bigcrawl.scheduler.crawl.fetched_elsewhere import FetchedElsewhere
    from bigcrawl.scheduler.gates.heads import HeadFirst
    from bigcrawl.scheduler.gates.robots import RobotsGate
    from bigcrawl.scheduler.gates.robots_store import KnownRules
    from bigcrawl.scheduler.gates.starts import FetchStarts

logger = logging.getLogger(__name__)

EARLY_MS = 5
STORE_RETRY_MS = 1_000
FAILURES_MAX = 3
FAILURES_KEPT = 1_000


class Gatekeeper:
    def __init__(
        self,
        starts: FetchStarts,
        robots: RobotsGate,
        heads: HeadFirst | None,
        elsewhere: FetchedElsewhere,
        outlet: Outlet,
        aside: SetsAside,
        sweeper: Sweeps,
    ) -> None:
        self._starts = starts
        self._known_address = starts.known_address
        self._clock = starts.clock
        self._robots = robots
        self._heads = heads
        self._elsewhere = elsewhere
        self._outlet = outlet
        self._aside = aside
        self._sweeper = sweeper
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_warned = False
        self._failures: dict[int, int] = {}
        self.forbidden = 0

    def __repr__(self) -> str:
        return f"<Gatekeeper tasks={len(self._tasks)}>"

    @property
    def waiting_count(self) -> int:
        return len(self._tasks)

    def offer(self, held: HeldUrl) -> None:
        """Check a newly taken URL: admit it, turn it away, or start a task if a check must wait. Never raises."""
        try:
            self._check_now(held)
        except Exception:
            logger.exception("the checks before fetching %(url)s failed", {"url": held.url})
            self._record_failure(held)

    def _check_now(self, held: HeldUrl) -> None:
        if len(self._aside.blacklist) and self._aside.covers(held):
            self._aside.set_aside(held)
            return
        known = self._robots.known_rules(held.authority)
        if known is None or self._elsewhere.is_known:
            self._spawn(self._check_waiting, held)
            return
        if self._end_if_forbidden(held, known):
            return
        if self._heads is not None and self._heads.is_due(held):
            self._spawn(self._check_waiting, held)
            return
        try:
            address = self._known_address(held.host)
        except Closed as closed:
            self._turn_away(held, closed)
            return
        if address is None:
            self._spawn(self._check_waiting, held)
            return
        held.record_address(address)
        self._pace(held)

    async def close(self) -> None:
        """Stop all decisions. Their URLs stay taken until the node returns them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _check_waiting(self, held: HeldUrl) -> None:
        if await self._elsewhere.has(held):
            self._outlet.give_up(held, "elsewhere")
            return
        known = self._robots.known_rules(held.authority) or await self._robots.stored_rules(held)
        if known is None:
            if not await self._starts.begin_other_fetch(held):
                return
            rest_ms = await self._robots.fetch_rules(held)
            held.record_host_report(self._robots.host_report(held.authority))
            if held.has_errback and held.robots_failure:
                self._outlet.fail(held, held.robots_failure)
            else:
                self._outlet.give_back(held, rest_ms, "robots")
        elif self._end_if_forbidden(held, known):
            return
        elif self._heads is not None and self._heads.is_due(held):
            await self._ask_head(held)
        else:
            await self._starts.grant(held)
            self._outlet.admit(held)

    async def _ask_head(self, held: HeldUrl) -> None:
        if not await self._starts.begin_other_fetch(held):
            return
        assert self._heads is not None
        rule = await self._heads.send_head(held)
        rest_ms = max(self._robots.rest_ms(held.authority), held.retry_after_ms)
        held.record_asked(rest_ms)
        if rule:
            self._outlet.give_up(held, rule)
        else:
            self._outlet.give_back(held, rest_ms, "heads")

    def _end_if_forbidden(self, held: HeldUrl, known: KnownRules) -> bool:
        if known.rules.is_allowed(held.url):
            if held.crawl_delay_ms != known.rules.crawl_delay_ms:
                held.record_crawl_delay(known.rules.crawl_delay_ms)
            return False
        if known.reason == "unreachable":
            self._end_all(held, "unreachable")
        else:
            self.forbidden += 1
            self._end_all(held, "forbidden", known.rules.forbidding_line(held.url))
        return True

    def _end_all(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """End the URL, and its host's other URLs in Redis for which the same reason holds."""
        self._outlet.give_up(held, reason, rule)
        if self._sweeper.is_due(held.host):
            self._start_task(self._sweeper.sweep(held.partition, held.host, reason))

    def _turn_away(self, held: HeldUrl, closed: Closed) -> None:
        if closed.error is not None:
            self._outlet.fail(held, OWN_ERROR, closed.error)
            return
        waits = closed.is_aside and (not closed.reason or is_seed(held.fields.body))
        if waits and closed.reason:
            self._warn_closed(held, closed)
        if waits:
            self._aside.set_aside(held)
        elif closed.reason:
            self._end_all(held, closed.reason)
        elif closed.failure and held.has_errback:
            self._outlet.fail(held, "error:dns")
        else:
            held.record_host_report(closed.failure)
            self._give_back_asked(held, closed.retry_ms)

    def _warn_closed(self, held: HeldUrl, closed: Closed) -> None:
        logger.log(
            logging.DEBUG if self._has_warned else logging.WARNING,
            "the seed %(url)s is not fetched: %(about)s. It waits until BIGCRAWL_ALLOW_PRIVATE_ADDRESSES = True opens "
            "all such addresses, or BIGCRAWL_ALLOW_ADDRESSES some",
            {"url": held.url, "about": closed.about},
        )
        self._has_warned = True

    def _pace(self, held: HeldUrl) -> None:
        if held.due_ms <= self._clock.monotonic_ms() + EARLY_MS:
            self._outlet.admit(held)
        else:
            self._spawn(self._admit_when_due, held)

    async def _admit_when_due(self, held: HeldUrl) -> None:
        await asyncio.sleep(max(0, held.due_ms - EARLY_MS - self._clock.monotonic_ms()) / 1000)
        self._outlet.admit(held)

    def _spawn(self, work: Callable[[HeldUrl], Awaitable[None]], held: HeldUrl) -> None:
        self._start_task(self._run_check(work, held))

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_check(self, work: Callable[[HeldUrl], Awaitable[None]], held: HeldUrl) -> None:
        try:
            await work(held)
        except Closed as closed:
            self._turn_away(held, closed)
        except TransientStoreError as error:
            logger.debug("%(url)s waits for Redis: %(error)s", {"url": held.url, "error": error})
            self._give_back_asked(held, STORE_RETRY_MS)
        except Exception:
            logger.exception("the checks before fetching %(url)s failed", {"url": held.url})
            self._record_failure(held)

    def _record_failure(self, held: HeldUrl) -> None:
        """Return a URL to its queue after an unexpected error; after `FAILURES_MAX` errors, set it aside on disk."""
        failures = self._failures.pop(held.fields.key, 0) + 1
        if failures >= FAILURES_MAX and held.stage is Stage.WAITING:
            self._aside.put_unrunnable(held, f"deciding about it failed {failures} times")
            return
        if len(self._failures) >= FAILURES_KEPT:
            del self._failures[next(iter(self._failures))]
        self._failures[held.fields.key] = failures
        self._give_back_asked(held, 10 * STORE_RETRY_MS)

    def _give_back_asked(self, held: HeldUrl, delay_ms: int) -> None:
        """Return a URL to its queue; its host rests if robots.txt may have been requested."""
        if held.stage is Stage.ROBOTS:
            delay_ms = max(delay_ms, self._robots.rest_ms(held.authority))
        self._outlet.give_back(held, delay_ms)
