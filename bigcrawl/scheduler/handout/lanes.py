r"""Hosts with short delays, whose URLs are taken ahead of their turns and paced by this node.

A host with a short delay would wait longer for Redis, and until its page is on disk, than for its delay. So after a
fetch that ends well and soon, it gets a lane. Its next URLs, about `AHEAD_MS` worth, are taken ahead and wait here:

    taken ahead -> line -> (fewer than `connections` use the host, and its rest is over) -> gates -> fetched -> ended
                     \__ given back: the host fails, or its URL comes back, or they wait too long ___________/

Only the fetch uses the host, not storage or acknowledgement. Each URL passes all gates when its turn comes. Redis gives
no URL of a host that must rest. After a crash, URLs in lanes may be fetched again.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.politeness.backoff_policy import FAILURES, is_failure
from bigcrawl.scheduler.handout.host_health import BROKEN
from bigcrawl.scheduler.records.held import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.handout.ends import UrlEnder
    from bigcrawl.scheduler.records.held import HeldUrl

AHEAD_MS: Final = 500
"""A host that needs longer for one URL has no lane."""

WAIT_MS_MAX: Final = 2_000
"""URLs that wait longer are given back, because the host or this node has become slow."""

HOSTS_SHARE: Final = 4
"""No lane opens if the hosts can fill the node with this many URLs each: then there is always a URL to fetch."""

LOOK_MS: Final = 250

LINES_SHARE: Final = 2
"""All lines together have at most 1/LINES_SHARE of the URLs that the node may hold."""


class LaneNeed(NamedTuple):
    """A lane lacks `urls`.

    Its host uses one every `each_ms`; this node holds `held` of its URLs, ended ones included.
    """

    partition: int
    host: str
    urls: int
    held: int
    each_ms: float


class _HostLane:
    __slots__ = (
        "cycle_ms",
        "has_more",
        "is_open",
        "is_starting",
        "line",
        "partition",
        "rest_ms",
        "rest_us",
        "turn_us",
        "using",
    )

    def __init__(self, held: HeldUrl) -> None:
        self.partition = held.partition
        self.using: set[HeldUrl] = {held}
        self.line: deque[HeldUrl] = deque()
        self.rest_us = 0
        self.turn_us = 0
        self.rest_ms = 0
        self.cycle_ms = 0
        self.is_open = False
        self.is_starting = False
        self.has_more = True

    @property
    def next_us(self) -> int:
        return max(self.rest_us, self.turn_us)


class HostLanes:
    def __init__(
        self,
        clock: Clock,
        paces: HostDelays,
        ends: UrlEnder,
        connections: int,
        urls_max: int,
        give_back: Callable[[HeldUrl, int], None],
    ) -> None:
        self._clock = clock
        self._paces = paces
        self._ends = ends
        self._connections = connections
        self._urls_max = urls_max
        self._give_back = give_back
        self._lanes: dict[str, _HostLane] = {}
        self._open: dict[str, _HostLane] = {}
        self._may_open = False
        self._looked_ms = -LOOK_MS
        self.open_lanes(offer=_ignore_url, wake=lambda: None, hosts=lambda: 0, is_alone=lambda: True)

    def open_lanes(
        self,
        *,
        offer: Callable[[HeldUrl], None],
        wake: Callable[[], None],
        hosts: Callable[[], int],
        is_alone: Callable[[], bool],
    ) -> None:
        """Allow lanes only if `is_alone`: otherwise other crawls hold hosts for single fetches."""
        self._offer = offer
        self._wake = wake
        self._hosts = hosts
        self._is_alone = is_alone

    def disable(self) -> None:
        """Open no lanes from now on, because pages may send further requests to their hosts."""
        self._is_alone = lambda: False
        self._may_open = False
        self.shut_all()

    @property
    def waiting(self) -> int:
        return sum(len(lane.line) for lane in self._open.values())

    @property
    def are_open(self) -> bool:
        return bool(self._open)

    def offer(self, held: HeldUrl) -> None:
        self._offer(held)

    def put(self, held: HeldUrl) -> None:
        lane = self._lanes.get(held.host)
        if lane is None:
            if self._connections == 1 and not self._may_open:  # all that lanes cost in a broad crawl
                self._offer(held)
                return
            lane = self._lanes[held.host] = _HostLane(held)
        elif lane.is_open:
            lane.line.append(held)
            self._start_next(held.host, lane)
            return
        else:
            lane.using.add(held)
        if self._connections == 1:
            self._offer(held)
        elif (left_ms := self._left_ms(lane)) <= AHEAD_MS:
            # It starts a delay after the last start, which Redis may not know yet.
            self._offer_at(held, lane, max(lane.next_us, held.turn_us))
        else:
            lane.using.discard(held)
            self._give_back(held, left_ms)

    def put_ahead(self, held: HeldUrl) -> None:
        lane = self._lanes.get(held.host)
        if lane is None:
            self._give_back(held, 0)
        elif not lane.is_open:
            self._give_back(held, self._left_ms(lane))
        else:
            lane.line.append(held)
            self._start_next(held.host, lane)

    def record_fetch_end(self, held: HeldUrl, ended_us: int = 0) -> None:
        """Record the end of a fetch at `ended_us`, or now. After a failure the host stays in use until the URL ends."""
        host = held.host
        lane = self._lanes.get(host)
        if lane is None or held not in lane.using:
            return
        if held.refusal and not is_failure(held.refusal):
            self._take_turn_back(held, lane)
            return
        if not self._went_well(held):
            self._shut_open(host, lane)
            self._give_back_begun(lane)
            return
        lane.using.discard(held)
        rest_ms = self._ends.free_host(held)
        lane.rest_us = max(lane.rest_us, (ended_us or self._clock.monotonic_us()) + 1_000 * rest_ms)
        lane.rest_ms = max(rest_ms, self._gap_us(host) // 1_000)
        lane.cycle_ms = held.answered_ms - held.due_ms + rest_ms
        if lane.is_open:
            self._start_next(host, lane)
            return
        # An outcome here is a failure on another connection that Redis does not know yet.
        if self._may_open and lane.cycle_ms <= AHEAD_MS and not any(each.outcome for each in lane.using):
            lane.is_open = True
            self._open[host] = lane
            self._wake()
        elif not lane.using:
            self._forget_if_unused(host, lane)

    def record_departure(self, held: HeldUrl, *, is_back: bool = False) -> None:
        lane = self._lanes.get(held.host)
        if lane is None or held not in lane.using:
            return
        lane.using.discard(held)
        has_failed = bool(held.robots_failure) or held.refusal.startswith("error:")
        if is_back or held.rest_after_head_ms >= 0 or has_failed:  # then Redis lets the host rest
            if held.end is not None:
                lane.rest_us = max(lane.rest_us, self._clock.monotonic_us() + 1_000 * held.end.delay_ms)
            self._shut_open(held.host, lane)
        elif not held.outcome:
            self._take_turn_back(held, lane)
        if lane.is_open:
            self._start_next(held.host, lane)
        elif not lane.using:
            self._forget_if_unused(held.host, lane)

    def _went_well(self, held: HeldUrl) -> bool:
        outcome, health = held.outcome, self._ends.health
        if not outcome.startswith("status:") or outcome in FAILURES or outcome.startswith(BROKEN):
            return False
        return not (held.retry_after_ms or health.fails(held.host) or health.bad_pages(held.host))

    def _start_next(self, host: str, lane: _HostLane) -> None:
        if lane.is_starting:
            return  # a URL was turned away at the gates
        lane.is_starting = True
        if len(lane.using) >= self._connections:
            lane.using = {held for held in lane.using if held.stage is not Stage.ENDED}
        while lane.line and len(lane.using) < self._connections:
            held = lane.line[0]
            due_us = max(1_000 * held.due_ms, lane.next_us, self._clock.monotonic_us())
            # A claim relies on this limit: after it, and the longest fetch, it takes the URL's fetch for ended.
            if due_us - 1_000 * held.due_ms > 1_000 * WAIT_MS_MAX:
                self._shut_open(host, lane)
                break
            if lane.using and due_us > self._clock.monotonic_us() + 1_000 * AHEAD_MS:
                break  # others wait for their turns already
            lane.line.popleft()
            if held.stage is not Stage.ENDED:
                lane.using.add(held)
                self._offer_at(held, lane, due_us)
        lane.is_starting = False
        if not (lane.is_open or lane.using):
            self._forget_if_unused(host, lane)
        elif lane.has_more and 2 * len(lane.line) < self._lane_length_max(lane):
            self._wake()

    def _offer_at(self, held: HeldUrl, lane: _HostLane, due_us: int) -> None:
        """Offer a URL to the gates, to start at `due_us`; several connections start a delay apart."""
        held.await_turn(due_us)
        lane.turn_us = held.turn_us + self._gap_us(held.host)
        self._offer(held)
        if held.refusal or held.stage is Stage.ENDED:
            self._take_turn_back(held, lane)

    def _take_turn_back(self, held: HeldUrl, lane: _HostLane) -> None:
        """Free the turn of a URL that was not sent, unless later turns were given out."""
        if lane.turn_us == held.turn_us + self._gap_us(held.host):
            lane.turn_us = held.turn_us

    def _gap_us(self, host: str) -> int:
        """Return the gap between starts on several connections; a single one is paced by its rests."""
        return 1_000 * self._paces.host_delay_ms(host) if self._connections > 1 else 0

    def record_sent(self, held: HeldUrl) -> None:
        """Record that a URL was sent on one of several connections. If it was late, the turns after it are delayed."""
        lane = self._lanes.get(held.host)
        if lane is not None and held in lane.using:
            later = sum(each.turn_us > held.turn_us and each.stage is not Stage.ENDED for each in lane.using)
            now_us = self._clock.monotonic_us()
            lane.turn_us = max(lane.turn_us, now_us + (1 + later) * self._gap_us(held.host))
            if lane.is_open:
                self._start_next(held.host, lane)

    def _forget_if_unused(self, host: str, lane: _HostLane) -> None:
        if self._connections == 1 or lane.next_us <= self._clock.monotonic_us():
            self._lanes.pop(host, None)

    def missing_urls(self) -> Iterator[LaneNeed]:
        """Yield the URLs that lanes lack, return those that waited too long, and forget unused hosts."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_ms >= LOOK_MS:
            self._looked_ms = now_ms
            each = min(self._connections, HOSTS_SHARE)
            self._may_open = 0 < self._hosts() * each <= self._urls_max and self._is_alone()
            if self._connections > 1 or len(self._lanes) > len(self._ends.held):
                self._forget_left()
        if not self._open:
            return
        counts = Counter(held.host for held in self._ends.held)
        for host, lane in list(self._open.items()):
            if not counts[host]:
                del self._open[host], self._lanes[host]
                continue
            if not self._may_open or (lane.line and now_ms - lane.line[0].due_ms > WAIT_MS_MAX):
                self.shut_lane(host)
                continue
            if lane.line:
                self._start_next(host, lane)  # a URL may have been set aside without notice
            most = self._lane_length_max(lane)
            if 2 * len(lane.line) < most:
                each_ms = max(lane.cycle_ms / self._connections, lane.rest_ms)
                yield LaneNeed(lane.partition, host, most - len(lane.line), counts[host], each_ms)

    def _forget_left(self) -> None:
        for host, lane in list(self._lanes.items()):
            if not lane.is_open and all(held.stage is Stage.ENDED for held in lane.using):
                self._forget_if_unused(host, lane)

    def record_more(self, host: str, *, has_more: bool) -> None:
        lane = self._open.get(host)
        if lane is not None:
            lane.has_more = has_more

    def shut_lane(self, host: str) -> None:
        lane = self._open.get(host)
        if lane is not None:
            self._shut_open(host, lane)
            if not lane.using:
                self._forget_if_unused(host, lane)

    def _shut_open(self, host: str, lane: _HostLane) -> None:
        if lane.is_open:
            lane.is_open = False
            del self._open[host]
            line, lane.line = lane.line, deque()
            for held in line:
                if held.stage is Stage.WAITING:
                    self._give_back(held, self._left_ms(lane))

    def _give_back_begun(self, lane: _HostLane) -> None:
        for held in list(lane.using):
            if held.stage is Stage.WAITING:
                self._give_back(held, max(AHEAD_MS, self._left_ms(lane)))

    def _left_ms(self, lane: _HostLane) -> int:
        """Return the rest that the host still needs; Redis does not know when its lane last started a fetch."""
        return max(0, -(-lane.next_us // 1_000) - self._clock.monotonic_ms())

    def shut_all(self) -> None:
        for host in list(self._open):
            self.shut_lane(host)

    def close(self) -> None:
        self._may_open, self._looked_ms = False, 1 << 62
        self.shut_all()

    def _lane_length_max(self, lane: _HostLane) -> int:
        most = self._connections * AHEAD_MS // max(1, lane.cycle_ms)
        if lane.rest_ms:
            most = min(most, AHEAD_MS // lane.rest_ms)
        return max(1, min(most, self._urls_max // (LINES_SHARE * max(1, len(self._lanes)))))


def _ignore_url(held: HeldUrl) -> None: ...
