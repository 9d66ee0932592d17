r"""From taken to ended inside one node (steps 9 to 14): memory only, what Scrapy's engine touches.

    add -> gatekeeper -> admit -> buffer -> pop -> started -> end_fetched -> acknowledged by the pump
                      \-> give_back, give_up ------------------^

No exception leaves `pop`, and nothing here waits.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from bigcrawl.politeness.throttle_policy import DelayPolicy, host_delay_ms
from bigcrawl.redisdb.scripts import Ended
from bigcrawl.scheduler.held import HeldUrls, Stage
from bigcrawl.scheduler.outcomes import rule_hash
from bigcrawl.scheduler.paces import Paces

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.scheduler.held import HeldUrl
    from bigcrawl.scheduler.outbox import Outbox
    from bigcrawl.scheduler.speed import SpeedControl

SERVERS_REMEMBERED = 10_000
ABORTED = "aborted"  # outcome of a fetch that was given up because the node stops
RETURN = b"="


class Handout:
    """The URLs a node holds, and those of them that may be fetched now."""

    def __init__(self, config: Config, clock: Clock, outbox: Outbox, paces: Paces | None = None) -> None:
        policy = config.politeness
        self._delays = DelayPolicy(policy.host_delay_ms, policy.crawl_delay_max_ms, policy.download_factor)
        self._paces = paces or Paces(config)
        self._clock = clock
        self._outbox = outbox
        self._buffer: deque[HeldUrl] = deque()
        self._started_ms: OrderedDict[str, int] = OrderedDict()
        self.held = HeldUrls()
        self.lease_ends_ms = 0  # monotonic; nothing is handed out after it
        self.wake_engine: Callable[[], None] = _nothing
        self.call_later: Callable[[float, Callable[[HeldUrl], None], HeldUrl], object] | None = None
        self.crawl_delay_ms: Callable[[str], int | None] = _no_delay
        self.speed: SpeedControl | None = None

    def __repr__(self) -> str:
        return f"<Handout held={len(self.held)} buffered={len(self._buffer)}>"

    @property
    def buffered(self) -> int:
        """URLs that wait for the engine."""
        return len(self._buffer)

    # --- the gatekeeper's outlet

    def admit(self, held: HeldUrl) -> None:
        """The URL may be fetched now."""
        if held.stage is Stage.WAITING:
            held.stage = Stage.BUFFERED
            self._buffer.append(held)
            self.wake_engine()

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "") -> None:
        """The URL returns to its place; its host rests."""
        if held.stage is Stage.ROBOTS:
            self._note_start(held.spaces, self._clock.monotonic_ms())  # not when it began: that may have been late
            if self._paces.differ:
                delay_ms = max(delay_ms, self._paces.host_delay_ms(held.host))
        self.held.end(held, Ended(held.seq, delay_ms, RETURN, counter), 0)

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """The URL ends unfetched, counted; one with an errback goes to the engine first, to be refused there."""
        held.detail = rule_hash(rule) if rule else 0
        if held.has_errback and held.stage in (Stage.WAITING, Stage.ROBOTS):
            held.stage = Stage.WAITING
            held.refusal = reason
            self.admit(held)
            return
        self.held.end(held, Ended(held.seq, 0, b"", f"dropped:{reason}"), 0)

    # --- the engine's side

    def pop(self) -> HeldUrl | None:
        """The next URL to fetch, or None; O(1)."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self.lease_ends_ms:
            return None
        for _ in range(len(self._buffer)):
            held = self._buffer.popleft()
            if held.stage is not Stage.BUFFERED:
                continue
            if self._is_slowed(held, now_ms):
                self._buffer.appendleft(held)
                return None
            if held.refusal or self._server_may_start(held, now_ms):
                held.stage = Stage.STARTED
                if self.speed is not None and self.speed.limits and not held.refusal:
                    self.speed.note_start()
                return held
        return None

    def end_fetched(self, held: HeldUrl) -> None:
        """The engine is done with the URL: downloaded, parsed and piped, or failed, or refused."""
        held.ended_ms = self._clock.monotonic_ms()
        if self.speed is not None and self.speed.limits and not held.refusal:
            self.speed.note_ended(held.fetched_bytes)
        if held.outcome == ABORTED:
            end = Ended(held.seq, self._rest_ms(held), RETURN)
        elif held.next_try:
            delay_ms = max(held.retry_delay_ms, self._rest_ms(held))
            end = Ended(held.seq, delay_ms, held.next_try, f"retried:{held.outcome}", held.fetched_bytes)
        else:
            rest_ms = 0 if held.refusal else self._rest_ms(held)
            end = Ended(held.seq, rest_ms, b"", held.outcome or "dropped:ignored", held.fetched_bytes)
        self.held.end(held, end, self._outbox.offered)

    def return_unstarted(self) -> None:
        """Give back every URL that the engine has not started."""
        self._buffer.clear()
        for held in self.held:
            if held.stage in (Stage.WAITING, Stage.BUFFERED):
                self.give_back(held, 0)

    def return_all(self) -> None:
        """Give back every URL that has not ended; the hosts of those that were asked for something rest."""
        self.return_unstarted()
        for held in self.held:
            self.give_back(held, self._rest_ms(held))

    def _rest_ms(self, held: HeldUrl) -> int:
        asked_ms = self.crawl_delay_ms(held.authority)
        policy = self._delays
        if self._paces.differ:
            policy = replace(policy, minimum_ms=self._paces.host_delay_ms(held.host))
        return host_delay_ms(policy, crawl_delay_ms=asked_ms, download_ms=held.download_ms)

    def _is_slowed(self, held: HeldUrl, now_ms: int) -> bool:
        """Whether the crawl's speed makes all fetches wait; the engine is woken when one may start."""
        speed = self.speed
        return speed is not None and speed.limits and not held.refusal and not speed.may_start(now_ms)

    def _server_may_start(self, held: HeldUrl, now_ms: int) -> bool:
        """Keep the gap between actual starts: a granted start that was late must not crowd the next one."""
        gaps = held.spaces
        if held.server_delay_ms and held.address:
            gaps = ((held.address, held.server_delay_ms), *gaps)
        if not gaps:
            return True
        started_ms = self._started_ms
        wait_ms = max(started_ms.get(name, 0) + gap_ms - now_ms for name, gap_ms in gaps)
        if wait_ms > 0 and self.call_later is not None:
            held.stage = Stage.WAITING
            self.call_later(wait_ms / 1000, self.admit, held)
            return False
        self._note_start(gaps, now_ms)
        return True

    def _note_start(self, gaps: tuple[tuple[str, int], ...], now_ms: int) -> None:
        started_ms = self._started_ms
        for name, _ in gaps:
            started_ms[name] = now_ms
            started_ms.move_to_end(name)
            if len(started_ms) > SERVERS_REMEMBERED:
                started_ms.popitem(last=False)


def _nothing() -> None:
    """Before the engine is there, there is nothing to wake."""


def _no_delay(authority: str) -> int | None:
    """Before the rules are there, nobody has asked for a delay."""
    return None
