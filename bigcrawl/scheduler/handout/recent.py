"""A node's recent activity, for viewers of the crawl. Fetches are sent only while a viewer watches."""

from __future__ import annotations

import json
import reprlib
from collections import deque
from collections.abc import Mapping
from itertools import islice
from operator import add, sub
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.logs.plain import excerpt_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.scripts import NodesMade

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Call, EndedUrl
    from bigcrawl.scheduler.handout.engine_side import EngineSide
    from bigcrawl.scheduler.records.held import HeldUrl

REDIS_AWAY: Final = "redis_away"
DISK_HUNG: Final = "disk_hung"
STOOD_STILL: Final = "stood_still"

EVENTS_MAX: Final = 20
FETCHES_MAX: Final = 300
SENT_MAX: Final = 60
URL_CHARACTERS: Final = 300
GONE_MAX: Final = 16
"""So many nodes that are gone are remembered with their last lines."""

ITEM_CHARACTERS: Final = 300
FIELDS_MAX: Final = 20


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        vars(self).update(maxstring=120, maxother=120, maxlist=4, maxtuple=4, maxdict=4, maxset=4)


_short = _ShortRepr()

RATE_MS: Final = 10_000


class RateMeter:
    """The growth of a total per second, over the last `RATE_MS`."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()

    def rate(self, now_ms: int, total: int) -> float:
        samples = self._samples
        samples.append((now_ms, total))
        while samples[0][0] < now_ms - RATE_MS:
            samples.popleft()
        since_ms, before = samples[0]
        return 1000 * (total - before) / (now_ms - since_ms) if now_ms > since_ms else 0.0


class RecentWork:
    """A node's last fetches, and when they, its items and its log lines are sent."""

    def __init__(self, crawl: str, node: str, client: RedisClient, engine: EngineSide) -> None:
        self._keys = CrawlKeys(crawl)
        self._node = node
        self._client = client
        self._engine = engine
        self._summed_before = engine.summed
        self._fetches: deque[tuple[int, str, str, int, int]] = deque(maxlen=FETCHES_MAX)
        self._events: deque[tuple[int, str, str]] = deque(maxlen=EVENTS_MAX)  # that Redis has not taken yet
        self._events_sent = 0
        self._noted = 0
        self._mark: tuple[Any, ...] = ()
        self._sent: tuple[Any, ...] = ()
        self._is_watched: Callable[[], bool] = bool
        self._watched_host: Callable[[], str] = str
        self._item_rate = RateMeter()

    def __repr__(self) -> str:
        return f"<RecentWork fetches={self._noted} watched={self._is_watched()}>"

    def set_watcher(self, is_watched: Callable[[], bool], watched_host: Callable[[], str]) -> None:
        """Set whether a viewer watches this crawl, and which host, if any."""
        self._is_watched, self._watched_host = is_watched, watched_host

    def made(self) -> NodesMade:
        """Return this node's counts, without those that an earlier node of this process has already reported."""
        return NodesMade(*map(sub, self._engine.made(), self._summed_before))

    def record_summed(self, made: NodesMade) -> None:
        self._engine.record_summed(NodesMade(*map(add, made, self._summed_before)))

    def reported(self, now_ms: int) -> dict[str, Any]:
        made = self.made()
        figures = {"figures": found} if (found := dict(self._engine.figures())) else {}
        return {**made._asdict(), "item_rate": round(self._item_rate.rate(now_ms, made.items), 1), **figures}

    def record_ends(self, ended: Sequence[HeldUrl]) -> None:
        now_ms, fetches = self._client.now_ms(), self._fetches
        for held in ended:
            end: EndedUrl | None = held.end
            if end is not None and ":" in end.counter:
                fetches.append((now_ms, held.url[:URL_CHARACTERS], end.counter, end.fetched_bytes, held.download_ms))
        self._noted += len(ended)

    def record_event(self, kind: str, text: str) -> None:
        self._events.append((self._client.now_ms(), kind, text))

    def calls(self) -> list[Call[int]]:
        """Return the calls that send events and any new, requested data."""
        self._events_sent = len(self._events)
        events = [scripts.record_event(self._keys, at_ms, kind, self._node, text) for at_ms, kind, text in self._events]
        return events + self._recent_calls()

    def _recent_calls(self) -> list[Call[int]]:
        is_watched, (items, warnings, errors) = self._is_watched(), self.made()
        self._engine.sample_items(is_watched=is_watched)
        logged = warnings + errors
        self._mark = (int(is_watched), logged, *((self._noted, items, self._watched_host()) if is_watched else ()))
        if self._mark == self._sent or (not is_watched and logged == (self._sent[1] if self._sent else 0)):
            return []
        return [scripts.put_recent(self._keys, self._node, json.dumps(self._data(is_watched=is_watched)), GONE_MAX)]

    def record_replies(self, replies: Sequence[int | BigcrawlError]) -> None:
        """Record what was sent. Data that a full Redis refused is sent the next time."""
        if replies and not any(isinstance(reply, BigcrawlError) for reply in replies):
            self._sent = self._mark
            for _ in range(min(self._events_sent, len(self._events))):  # two heartbeats may overlap
                self._events.popleft()
            self._events_sent = 0

    def _data(self, *, is_watched: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"at_ms": self._client.now_ms(), "log": self._engine.log_rows()}
        if is_watched:
            fetches = list(self._fetches)[::-1]
            more = _fetches_of(self._watched_host(), fetches[SENT_MAX:])
            found |= {"fetches": fetches[:SENT_MAX] + more, "items": self._engine.last_items()}
            if (summary := self._engine.summary()) is not None:
                found["summary"] = summary
        return found


def _fetches_of(host: str, fetches: list[tuple[int, str, str, int, int]]) -> list[tuple[int, str, str, int, int]]:
    if not host:
        return []
    starts = f"http://{host}/", f"https://{host}/", f"http://{host}:", f"https://{host}:"
    return [fetch for fetch in fetches if fetch[1].startswith(starts)][:SENT_MAX]


def item_text(item: object) -> str:
    """Return an item as one plain line; large values are cut."""
    try:
        fields = item if isinstance(item, Mapping) else vars(item)
        text = ", ".join(f"{name}: {_value_text(value)}" for name, value in islice(fields.items(), FIELDS_MAX))
    except Exception:  # noqa: BLE001 - of a project's own class, or one with slots
        text = _short.repr(item)
    return excerpt_of(text, ITEM_CHARACTERS)


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return value[:ITEM_CHARACTERS]
    return f"{len(value):,} bytes" if isinstance(value, bytes) else _short.repr(value)
