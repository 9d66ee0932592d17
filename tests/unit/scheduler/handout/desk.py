"""A handout that is its test's to turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.clock import ManualClock
from bigcrawl.politeness.addresses import server_of
from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
from bigcrawl.scheduler.handout.engine_side import EngineSide
from bigcrawl.scheduler.handout.handout import Handout
from bigcrawl.scheduler.handout.observers import Observer, Observers
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.records.held_urls import HeldUrls
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.redisdb.scripts import EndedUrl
    from bigcrawl.scheduler.records.held import HeldUrl

NO_REDIS: Any = None


class _Gaps(Observer):
    def __init__(self) -> None:
        self.noted: list[tuple[str, str, int, int]] = []

    def record_gap(self, kind: str, name: str, gap_ms: int, due_ms: int) -> None:
        self.noted.append((kind, name, gap_ms, due_ms))


class Desk:
    """A handout with its clock, its outbox, the timers it asked for and the gaps it kept."""

    def __init__(self, tmp_path: Path, **settings: Any) -> None:
        self.config = config = make_config(tmp_path, "crawl", **{"host_delay": 1, "backoff": 10, **settings})
        self.clock = ManualClock()
        self.outbox = Outbox("node", "crawl", 10, self.clock)
        self.asked_again: list[HeldUrl] = []
        self.timers: list[tuple[float, Any, HeldUrl]] = []
        gaps = _Gaps()
        self.gaps = gaps.noted
        self.handout = Handout(
            JoinedCrawl(config, NO_REDIS, self.clock, "node"),
            EngineSide(),
            self.outbox,
            Observers(HeldUrls(), self.outbox, [gaps]),
            dice=lambda: 0.5,
            call_later=lambda delay_s, call, held: self.timers.append((delay_s, call, held)),
        )
        self.handout.lanes.open_lanes(
            offer=self.asked_again.append, wake=lambda: None, hosts=lambda: 0, is_alone=lambda: True
        )
        self.handout.lease.ends_ms = 1 << 60

    def taken(self, seq: int = 1, address: str = "") -> HeldUrl:
        held = held_url(seq)
        held.address = address
        gap_ms = self.config.politeness.server_delay_ms
        held.gaps = ((server_of(address), gap_ms),) if address and gap_ms else ()
        held.due_ms = self.clock.monotonic_ms()
        self.handout.held.add(held)
        return held

    def started(self, seq: int = 1) -> HeldUrl:
        held = self.taken(seq)
        self.handout.admit(held)
        assert self.handout.buffer.pop() is held
        assert not self.handout.try_send((), held)
        return held

    def ended(self, flushed: int = 0) -> list[EndedUrl]:
        return [held.end for held in self.handout.held.acknowledgeable(flushed) if held.end]

    def fetched_in(self, seq: int, download_ms: int, host: str) -> None:
        """A page of a host is fetched, in that time."""
        held = self.taken(seq)
        held.host = host
        self.handout.admit(held)
        assert self.handout.buffer.pop() is held
        held.outcome, held.download_ms = "status:200", download_ms
        self.handout.fetches.end(held)
