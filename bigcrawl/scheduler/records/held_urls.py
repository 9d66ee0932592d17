from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.scheduler.records.at_gates import ANY_TIME
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.queued_url import encode_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bigcrawl.redisdb.scripts import EndedUrl

# Confirmed ends behind an unconfirmed one; more than this many are removed in bulk.
CONFIRMED_MAX = 512


class PageStorage(Protocol):
    def is_flushed(self) -> bool:
        """Whether pages can be stored. While they cannot, nothing is fetched or acknowledged."""

    @property
    def pages(self) -> int: ...

    @property
    def safe_pages(self) -> int:
        """How many of `pages`, counted from the first, are safe."""

    def hurry(self) -> None:
        """Make the stored pages safe now, rather than later together with others."""


class Feeds(Protocol):
    @property
    def is_stuck(self) -> bool:
        """Whether items can no longer be stored, so that nothing should be fetched."""

    def flush(self) -> bool:
        """Make all items so far safe. If this returns False, their pages must not be acknowledged yet."""


class _ConfirmedEnd(NamedTuple):
    held: HeldUrl
    now_ms: int
    running_ms: int


@dataclass(slots=True)
class HeldUrls:
    """The held URLs, by (partition, seq). An ended one stays until its links are in Redis and its page is safe."""

    storage: PageStorage | None = None
    _held: dict[tuple[int, int], HeldUrl] = field(default_factory=dict)
    _ended: deque[HeldUrl] = field(default_factory=deque)
    _confirmed: int = 0
    _lately: deque[_ConfirmedEnd] = field(default_factory=deque)
    _log_remaining: Callable[[HeldUrl, int | None], None] | None = None

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[HeldUrl]:
        return iter(list(self._held.values()))

    def tell_left_hosts_to(self, tell: Callable[[HeldUrl, int | None], None]) -> None:
        """Call `tell` when a URL of a shared host leaves, with its host's rest in ms; None if its fetch may run."""
        self._log_remaining = tell

    @property
    def unacknowledged(self) -> int:
        """Ended URLs that still lack their links in Redis, a safe page, or Redis's confirmation."""
        return len(self._ended) - self._confirmed

    def has_safe(self, count: int) -> bool:
        if self.unacknowledged < count:
            return False
        return self.storage is None or self._ended[count - 1].pages_at_end <= self.storage.safe_pages

    def hurry_pages(self, count: int) -> None:
        if self.storage is not None and self.unacknowledged >= count and not self.has_safe(count):
            self.storage.hurry()

    def add(self, held: HeldUrl) -> None:
        self._held[held.partition, held.fields.seq] = held

    def by_partition(self, partition: int) -> list[HeldUrl]:
        return [held for held in self._held.values() if held.partition == partition]

    def by_partitions(self, partitions: Iterable[int]) -> dict[int, list[HeldUrl]]:
        found: dict[int, list[HeldUrl]] = {partition: [] for partition in partitions}
        for held in self._held.values():
            if held.partition in found:
                found[held.partition].append(held)
        return found

    def end(self, held: HeldUrl, end: EndedUrl, offered: int) -> None:
        # By identity: the partition may have been lost and won again, and the URL taken again.
        if held.stage is not Stage.ENDED and self._held.get((held.partition, held.fields.seq)) is held:
            if held.granted.of_host.granted_ms:
                self._leave_host(held, end.delay_ms)
            held.record_end(end, offered=offered, pages=self.storage.pages if self.storage else 0)
            self._ended.append(held)

    def acknowledgeable(self, flushed: int) -> list[HeldUrl]:
        """Return the ended URLs whose links and pages are safe and whose rows are sent, oldest first."""
        ready = []
        safe_pages = self.storage.safe_pages if self.storage else 0
        for held in self._ended:
            if held.offered_at_end > flushed or held.pages_at_end > safe_pages or held.owes_rows:
                break
            if not held.is_end_confirmed:
                ready.append(held)
        return ready

    def safe_with_rows(self) -> list[HeldUrl]:
        """Return ended URLs whose pages are safe and whose rows are still to be sent, oldest first."""
        safe_pages = self.storage.safe_pages if self.storage else 0
        found = []
        for held in self._ended:
            if held.pages_at_end > safe_pages:
                break
            if held.owes_rows:
                found.append(held)
        return found

    def forget(self, ends: list[HeldUrl], now_ms: int, running_ms: int) -> None:
        """Remove URLs whose end Redis has confirmed; keep their ends until `forget_safe`."""
        for held in ends:
            key = (held.partition, held.fields.seq)
            if self._held.get(key) is held:
                del self._held[key]
                self._lately.append(_ConfirmedEnd(held, now_ms, running_ms))
                held.confirm_end()
                self._confirmed += 1
        while self._ended and self._ended[0].is_end_confirmed:
            self._ended.popleft()
            self._confirmed -= 1
        if self._confirmed > CONFIRMED_MAX:
            self._ended = deque(held for held in self._ended if not held.is_end_confirmed)
            self._confirmed = 0

    def forget_safe(self, running_ms: int) -> None:
        """Forget the ends that Redis can no longer lose, as it has run long enough."""
        while self._lately and self._lately[0].running_ms < running_ms - FORGETTABLE_MS:
            self._lately.popleft()

    def drop(self, held: HeldUrl) -> bool:
        key = (held.partition, held.seq)
        if self._held.get(key) is not held:
            return False
        del self._held[key]
        if held.granted.of_host.granted_ms:
            self._leave_host(held, 0)
        return True

    def _leave_host(self, held: HeldUrl, rest_ms: int | None) -> None:
        if self._log_remaining is not None:
            self._log_remaining(held, rest_ms)
        held.hold_host(ANY_TIME)

    def drop_partition(self, partition: int) -> list[HeldUrl]:
        dropped = self.by_partition(partition)
        for held in dropped:
            if held.stage is not Stage.ENDED and held.granted.of_host.granted_ms:
                self._leave_host(held, None)
            held.go_to(Stage.ENDED)
            del self._held[partition, held.seq]
        self._ended = deque(held for held in self._ended if held.partition != partition and not held.is_end_confirmed)
        self._confirmed = 0
        return dropped

    def recent_ends_of(self, partition: int) -> list[HeldUrl]:
        return [held for held in self.recently_ended() if held.partition == partition]

    def recently_ended(self) -> list[HeldUrl]:
        return [held for held, _, _ in self._lately]

    def lost_rests(self, partition: int, now_ms: int) -> dict[str, int]:
        """Return the remaining rests in ms of hosts whose rest a rewound Redis may have lost."""
        left: dict[str, int] = {}
        for held, confirmed_ms, _ in self._lately:
            until_ms = confirmed_ms + (held.end.delay_ms if held.end else 0)
            if held.partition == partition and until_ms > now_ms:
                left[held.host] = max(left.get(held.host, 0), until_ms - now_ms)
        return left


def timed_of(ended: Iterable[HeldUrl]) -> bytes:
    found = [held.again for held in ended if held.again is not None and held.end and not held.end.member]
    return encode_timed(found) if found else b""
