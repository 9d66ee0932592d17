r"""Hosts with short delays, of which Redis gives URLs ahead of their turns, and which this node paces (steps 9 to 12).

A host whose delay is long gives one URL, rests, and gives the next: Redis paces it. With a short delay it would wait
longer for Redis, and for its page's way to the disk, than for its delay. So when a fetch ends well and soon, its host
gets a lane. Its next URLs are taken ahead, about as many as it uses up in `AHEAD_MS`, and wait here:

    taken ahead -> line -> (fewer than `connections` use the host, and its rest is over) -> gates -> fetched -> ended
                     \__ given back: the host fails, or its URL comes back, or they wait too long ___________/

The fetch alone uses the host, not the page's way to the disk nor the acknowledgement. Each URL passes the gates when
its turn comes, so robots.txt, blacklist, server gaps and other crawls are asked as for any other. Redis gives no URL of
a host that must rest, whatever this node believes. All are taken, and so among those that may be fetched again.
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
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.handout.ends import Ends
    from bigcrawl.scheduler.records.held import HeldUrl

AHEAD_MS: Final = 500
"""A lane's URLs last about that long. A host that needs longer for a single one has no lane."""

WAIT_MS_MAX: Final = 2_000
"""A URL that waits longer in its lane is given back: the host has become slow, or this node."""

HOSTS_SHARE: Final = 4
"""If hosts may fill the node with one URL for each connection, or with so many each, there is always one to fetch."""

LOOK_MS: Final = 250  # how often the hosts are counted

LINES_SHARE: Final = 2
"""All lines together have at most one in so many of these URLs; the others are fetched, or acknowledged."""


class Ahead(NamedTuple):
    """What a lane lacks: URLs of this host, which uses one up in `each_ms`.

    `held` are here already, those in their ends too.
    """

    partition: int
    host: str
    urls: int
    held: int
    each_ms: float


class _Lane:
    """A host that is being used."""

    __slots__ = ("cycle_ms", "has_more", "is_open", "is_starting", "line", "next_us", "partition", "rest_ms", "using")

    def __init__(self, held: HeldUrl) -> None:
        self.partition = held.partition
        self.using: set[HeldUrl] = {held}
        self.line: deque[HeldUrl] = deque()
        self.next_us = 0  # the rest of a host counts from the end of its fetch to the microsecond
        self.rest_ms = self.cycle_ms = 0  # after the last fetch; from its turn to the end of that rest
        self.is_open = False
        self.is_starting = False
        self.has_more = True  # Redis may have more URLs of the host


class Lanes:
    """The hosts that URLs of this node use, and the lines of those that have one.

    Attributes:
        waiting: how many URLs wait in lines, roughly.
    """

    def __init__(
        self,
        clock: Clock,
        paces: Paces,
        ends: Ends,
        connections: int,
        urls_max: int,
        give_back: Callable[[HeldUrl, int], None],
    ) -> None:
        """Begin without hosts.

        Args:
            clock: the node's.
            paces: how far apart the starts of a host's connections are.
            ends: knows how long hosts rest, and which fail.
            connections: how many URLs may use a host.
            urls_max: how many URLs the node may hold.
            give_back: returns a URL to its queue.
        """
        self._clock = clock
        self._paces = paces
        self._ends = ends
        self._connections = connections
        self._urls_max = urls_max
        self._give_back = give_back
        self._lanes: dict[str, _Lane] = {}
        self._open: dict[str, _Lane] = {}
        self._may_open = False
        self._looked_ms = -LOOK_MS
        self.connect(offer=_nothing, wake=lambda: None, hosts=lambda: 0, is_alone=lambda: True)

    def __repr__(self) -> str:
        return f"<Lanes hosts={len(self._lanes)} open={len(self._open)}>"

    def connect(
        self,
        *,
        offer: Callable[[HeldUrl], None],
        wake: Callable[[], None],
        hosts: Callable[[], int],
        is_alone: Callable[[], bool],
    ) -> None:
        """Work with the rest of the node from now on.

        Args:
            offer: offers a URL to the gates.
            wake: wakes the pump, because a line gets short.
            hosts: returns of how many hosts there are URLs.
            is_alone: whether there is no other crawl; hosts that others fetch too are held for one fetch at a time.
        """
        self._offer = offer
        self._wake = wake
        self._hosts = hosts
        self._is_alone = is_alone

    @property
    def waiting(self) -> int:
        """How many URLs wait in lines. Cost: O(open lanes)."""
        return sum(len(lane.line) for lane in self._open.values())

    @property
    def are_open(self) -> bool:
        """Whether this node paces any host."""
        return bool(self._open)

    # --- arrival

    def put(self, held: HeldUrl) -> None:
        """A URL was taken because its host is due."""
        lane = self._lanes.get(held.host)
        if lane is None:
            lane = self._lanes[held.host] = _Lane(held)
        elif lane.is_open:
            lane.line.append(held)
            self._start(held.host, lane)
            return
        else:
            lane.using.add(held)
        if self._connections == 1 or self._follow_others(held, lane):
            self._offer(held)

    def put_ahead(self, held: HeldUrl) -> None:
        """A URL was taken ahead of its host's turn. It goes back if its lane is no more."""
        lane = self._lanes.get(held.host)
        if lane is None:
            self._give_back(held, 0)
        elif not lane.is_open:
            self._give_back(held, self._left_ms(lane))
        else:
            lane.line.append(held)
            self._start(held.host, lane)

    # --- use

    def note_over(self, held: HeldUrl) -> None:
        """The fetch of a URL is over, and no longer uses its host, unless it went badly: then its end says more."""
        host = held.host
        lane = self._lanes.get(host)
        if lane is None or held not in lane.using:
            return
        if held.refusal and not is_failure(held.refusal):
            return  # nothing was asked of its host
        if not self._went_well(held):
            self._shut(host, lane)
            return
        lane.using.discard(held)
        lane.rest_ms = self._ends.free_host(held)
        lane.next_us = max(lane.next_us, self._clock.monotonic_us() + 1_000 * lane.rest_ms)
        lane.cycle_ms = held.answered_ms - held.due_ms + lane.rest_ms
        if lane.is_open:
            self._start(host, lane)
            return
        # One with an outcome has failed on another connection, of which Redis does not know yet.
        if self._may_open and lane.cycle_ms <= AHEAD_MS and not any(each.outcome for each in lane.using):
            lane.is_open = True
            self._open[host] = lane
            self._wake()
        elif not lane.using:
            self._leave(host, lane)

    def note_left(self, held: HeldUrl, *, is_back: bool = False) -> None:
        """A URL has ended, or goes back to its queue. If it still used its host, it does so no more."""
        lane = self._lanes.get(held.host)
        if lane is None or held not in lane.using:
            return
        lane.using.discard(held)
        has_failed = bool(held.robots_failure) or held.refusal.startswith("error:")
        if is_back or held.rest_after_head_ms >= 0 or has_failed:  # then Redis is told of a rest
            if held.end is not None:
                lane.next_us = max(lane.next_us, self._clock.monotonic_us() + 1_000 * held.end.delay_ms)
            self._shut(held.host, lane)
        if lane.is_open:
            self._start(held.host, lane)
        elif not lane.using:
            self._leave(held.host, lane)

    def _went_well(self, held: HeldUrl) -> bool:
        outcome, health = held.outcome, self._ends.health
        if not outcome.startswith("status:") or outcome in FAILURES or outcome.startswith(BROKEN):
            return False
        return not (held.retry_after_ms or health.fails(held.host) or health.bad_pages(held.host))

    def _start(self, host: str, lane: _Lane) -> None:
        """Let the next URLs use the host, as many as may."""
        if lane.is_starting:
            return  # a URL was turned away at the gates
        lane.is_starting = True
        if len(lane.using) >= self._connections:
            lane.using = {held for held in lane.using if held.stage is not Stage.ENDED}
        while lane.line and len(lane.using) < self._connections:
            held = lane.line[0]
            due_us = max(1_000 * held.due_ms, lane.next_us, self._clock.monotonic_us())
            # Also of a claim: it would take the fetch for one that is over.
            if due_us - 1_000 * held.due_ms > 1_000 * WAIT_MS_MAX:
                self._shut(host, lane)
                break
            lane.line.popleft()
            if held.stage is not Stage.ENDED:
                self._begin(held, lane, due_us)
                lane.using.add(held)
                self._offer(held)
        lane.is_starting = False
        if not (lane.is_open or lane.using):
            self._leave(host, lane)
        elif lane.has_more and 2 * len(lane.line) < self._most(lane):
            self._wake()

    def _follow_others(self, held: HeldUrl, lane: _Lane) -> bool:
        """Let a URL that Redis gave start a delay after the last one, of which Redis may not know yet.

        Returns:
            Whether that is soon; otherwise it goes back.
        """
        if (left_ms := self._left_ms(lane)) > AHEAD_MS:
            lane.using.discard(held)
            self._give_back(held, left_ms)
            return False
        self._begin(held, lane, max(lane.next_us, 1_000 * held.due_ms))
        return True

    def _begin(self, held: HeldUrl, lane: _Lane, due_us: int) -> None:
        """A URL starts then, and the next one on another connection a delay later."""
        held.await_turn(due_us)
        if self._connections > 1:
            lane.next_us = due_us + 1_000 * self._paces.host_delay_ms(held.host)

    def _leave(self, host: str, lane: _Lane) -> None:
        """Forget a host that nothing uses; with several connections not before its rest is over, see `put`."""
        if self._connections == 1 or lane.next_us <= self._clock.monotonic_us():
            self._lanes.pop(host, None)

    # --- what is lacking

    def lacking(self) -> Iterator[Ahead]:
        """Yield what lanes lack. Give back what has waited too long, and forget hosts that are used no more."""
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
                self.shut(host)
                continue
            if lane.line:
                self._start(host, lane)  # a URL may have been set aside, which tells nobody
            most = self._most(lane)
            if 2 * len(lane.line) < most:
                each_ms = max(lane.cycle_ms / self._connections, lane.rest_ms)
                yield Ahead(lane.partition, host, most - len(lane.line), counts[host], each_ms)

    def _forget_left(self) -> None:
        """Forget hosts whose URLs were set aside, or lost with their partition, which tells nobody."""
        for host, lane in list(self._lanes.items()):
            if not lane.is_open and all(held.stage is Stage.ENDED for held in lane.using):
                self._leave(host, lane)

    def note_more(self, host: str, *, has_more: bool) -> None:
        """Whether Redis may have more URLs of a host that lacks some."""
        lane = self._open.get(host)
        if lane is not None:
            lane.has_more = has_more

    def shut(self, host: str) -> None:
        """Give back the line of a host. Redis paces it again."""
        lane = self._open.get(host)
        if lane is not None:
            self._shut(host, lane)
            if not lane.using:
                self._leave(host, lane)

    def _shut(self, host: str, lane: _Lane) -> None:
        if lane.is_open:
            lane.is_open = False
            del self._open[host]
            line, lane.line = lane.line, deque()
            for held in line:
                if held.stage is Stage.WAITING:
                    self._give_back(held, self._left_ms(lane))

    def _left_ms(self, lane: _Lane) -> int:
        """How long the host must still rest. Redis does not know when its last fetch in the lane started."""
        return max(0, -(-lane.next_us // 1_000) - self._clock.monotonic_ms())

    def shut_all(self) -> None:
        """Give back all lines."""
        for host in list(self._open):
            self.shut(host)

    def close(self) -> None:
        """Give back all lines, and open none any more."""
        self._may_open, self._looked_ms = False, 1 << 62
        self.shut_all()

    def _most(self, lane: _Lane) -> int:
        """How many URLs its line may have."""
        most = self._connections * AHEAD_MS // max(1, lane.cycle_ms)
        if lane.rest_ms:
            most = min(most, AHEAD_MS // lane.rest_ms)
        return max(1, min(most, self._urls_max // (LINES_SHARE * max(1, len(self._lanes)))))


def _nothing(held: HeldUrl) -> None:
    """Do nothing; the default until the gates are there."""
