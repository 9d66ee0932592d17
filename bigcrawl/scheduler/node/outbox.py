"""Links leave a node (step 3): discovered URLs wait here, and are sent to inboxes in numbered batches.

So do rows about the contents of pages, for the partitions of their contents. Hints, which may be lost, wait longer than
anything else, because a step that reads one costs little less than one that reads many, and a few go only with others.

A batch keeps its number until Redis has taken it, so that a repeat after a lost reply is recognised. An inbox takes
number n only after n-1: when Redis refuses a command of a pipeline, those behind it wait for it. Batches are kept for
some seconds of the running time of Redis, in case it forgets them.

If an inbox lacks even the batch before the first one that waits, Redis has lost more than is kept here, or has not
heard from this node for a day. Nobody knows what n-1 was, so the node begins a new session of that inbox, with numbers
from 1. After that Redis accepts nothing of earlier sessions, so a late message does no harm.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.running_time import FORGETTABLE_MS
from bigcrawl.scheduler.node.recent_keys import RecentKeys
from bigcrawl.scheduler.node.unfolded import Unfolded
from bigcrawl.scheduler.records.contents import ContentRow, RowKind, pack_contents, rows_in
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch
from bigcrawl.scheduler.records.votes import VOTE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.node.link_graph import LinkGraph, PageVotes

BATCH_URLS_MAX = 2_000  # bounds a message to some 200 KB
BATCH_BYTES_MAX = 1 << 18  # the same for large requests, before compression; a larger request goes alone
# More than BIGCRAWL_OUTBOX_URLS_MAX ordinary URLs take. Requests with large bodies would fill memory before that.
OUTBOX_BYTES_MAX = 64 << 20
# Of the running time of Redis: longer than it may forget, for one that has lost more than it promises. If they are more
# than the outbox may hold, batches are kept for `FORGETTABLE_MS`.
KEEP_SENT_MS = 10_000
# So many hints go by themselves: those of a node that fetches nothing, and folds what others have found.
HINTS_ALONE_BYTES = 1 << 16
# Places for keys that were sent, 2 MB: most links lead where recent ones led.
RECENT_KEYS = 1 << 18


class _Batch(NamedTuple):
    """One message to an inbox. A tuple, because there are two a page: a frozen dataclass takes longer to make.

    Attributes:
        offered_before: how many URLs and rows had been offered to the outbox when the batches before it were made.
    """

    partition: int
    session: int
    number: int
    data: bytes
    urls: int
    edges: bytes
    votes: bytes
    contents: bytes
    offered_before: int

    @property
    def size(self) -> int:
        """Bytes of the message that grow with the pages."""
        return len(self.data) + len(self.votes) + len(self.contents)

    @property
    def weight(self) -> int:
        """How many URLs it counts as until its owner has merged it. A vote or row takes about as much room as a URL."""
        return self.urls + len(self.votes) // VOTE_BYTES + rows_in(self.contents)


class Outbox:
    """Discovered URLs on their way to the partitions' inboxes.

    `offered` and `flushed` count URLs and rows from the start of the node. Once `flushed` reaches n, everything offered
    when `offered` was n is in Redis. An acknowledgement waits for that.
    """

    def __init__(
        self,
        node: str,
        crawl: str,
        urls_max: int,
        clock: Clock,
        link_graph: LinkGraph | None = None,
        partitions: int = 1,
        votes: PageVotes | None = None,
        hints_ms: int = 0,
    ) -> None:
        """Send to `partitions` inboxes. Hints wait `hints_ms` for others."""
        self._node = node
        self._crawl = crawl
        self._urls_max = urls_max
        self._clock = clock
        self._waiting: dict[int, list[QueuedUrl]] = {}
        self._waiting_bytes = 0
        self._contents: dict[int, list[bytearray]] = {}  # rows that wait, by kind
        self._hints: dict[int, list[bytearray]] = {}  # the same of hints
        self._hints_ms = hints_ms
        self._hinted_ms = 0  # when hints were sent last
        self._unsent: deque[_Batch] = deque()
        self._unsent_bytes = 0
        self._sent: deque[tuple[int, _Batch]] = deque()
        self._sent_bytes = 0
        self._numbers: dict[int, int] = {}
        self._sessions: dict[int, int] = {}  # of partitions that are past their first
        self._recent = RecentKeys(RECENT_KEYS)
        self._link_graph = link_graph
        self._votes = votes
        self.unfolded = Unfolded(crawl, partitions, urls_max)
        self._flushed_partitions: set[int] = set()
        self._told_partitions: set[int] = set()
        self._tell_sent: Callable[[int, int], None] = _to_nobody
        self._sealed = 0  # how many of the offered URLs are in batches
        self.offered = 0
        self.flushed = 0
        self.dropped_recent = 0

    def __repr__(self) -> str:
        return f"<Outbox waiting={self.waiting} unsent={len(self._unsent)} offered={self.offered}>"

    @property
    def waiting(self) -> int:
        """URLs and rows that Redis has not taken yet; if a flush was refused in part, also some that it has."""
        return self.offered - self.flushed

    @property
    def is_full(self) -> bool:
        """Whether spiders must wait before they offer more. URLs that they offer nevertheless are kept."""
        return self.waiting >= self._urls_max or self._waiting_bytes + self._unsent_bytes >= OUTBOX_BYTES_MAX

    def offer(self, url: QueuedUrl, partition: int) -> None:
        """Take a URL; O(1), no I/O, never refused."""
        self._waiting.setdefault(partition, []).append(url)
        self._waiting_bytes += len(url.body)
        self.offered += 1

    def offer_content(self, row: ContentRow) -> None:
        """Take a row about the content of a page; O(1), no I/O, never refused."""
        _add_row(self._contents, row)
        self.offered += 1

    def offer_hint(self, row: ContentRow) -> None:
        """Take a row that may be lost, unless the outbox is full. It is not counted, and nothing waits for it."""
        if not self.is_full:
            _add_row(self._hints, row)

    def remember_each(self, keys: KeyArray) -> list[int]:
        """Remember the keys of checked URLs, all different. Return the positions of those that were not offered lately.

        The others are dropped: their first sighting is in the outbox or already in Redis, and acknowledgements wait for
        it in either case.
        """
        fresh: list[int] = self._recent.remember_each(keys).tolist()
        self.dropped_recent += len(keys) - len(fresh)
        return fresh

    def remember(self, key: int) -> bool:
        """Remember the key of a checked URL. True if it was not offered lately; otherwise the URL is dropped."""
        is_new = self._recent.remember(key)
        self.dropped_recent += not is_new
        return is_new

    def tell_sent_to(self, tell: Callable[[int, int], None]) -> None:
        """Have `tell` called with the partition of each batch that Redis has taken, and how many URLs it had."""
        self._tell_sent = tell

    async def flush(self, client: RedisClient) -> int:
        """Send everything that waits. Return how many URLs were sent.

        Raises:
            TransientStoreError: Redis did not take all; the rest is sent next time, in the same order.
        """
        before = self.flushed
        self._seal()
        while batches := self._next_batches():
            results = await client.run_each([self._call(batch) for batch in batches])
            failed = self._note_sent(batches, results, client.running_ms)
            if failed is not None:
                raise failed
        self._forget_safe(client.running_ms)
        return self.flushed - before

    @property
    def has_flushed(self) -> bool:
        """Whether partitions have got something since they were taken last."""
        return bool(self._flushed_partitions or self._told_partitions)

    def take_flushed_partitions(self) -> set[int]:
        """Take the partitions that have got batches since the last call."""
        flushed, self._flushed_partitions = self._flushed_partitions, set()
        return flushed

    def take_told_partitions(self) -> set[int]:
        """Return, once, the partitions that have got only rows about contents since the last call."""
        told, self._told_partitions = self._told_partitions, set()
        return told

    def send_again(self) -> None:
        """Redis may have forgotten: queue the batches of the last seconds again, and forget which keys were sent.

        Whatever else it forgot came from pages whose end it forgot as well, and which are fetched again.
        """
        self._unsent.extendleft(batch for _, batch in reversed(self._sent))
        self._unsent_bytes = sum(batch.size for batch in self._unsent)
        self._sent.clear()
        self._sent_bytes = 0
        self._recent.clear()
        if self._link_graph is not None:
            self._link_graph.send_again()
        if self._votes is not None:
            self._votes.send_again()
        self.unfolded.forget()
        if self._unsent:  # acknowledgements wait for them again
            self.flushed = min(self.flushed, self._unsent[0].offered_before)

    def _seal(self) -> None:
        """Turn waiting URLs into numbered batches."""
        self._mind_hints()
        waiting, self._waiting = self._waiting, {}
        is_small = self._waiting_bytes <= BATCH_BYTES_MAX
        for partition, urls in waiting.items():
            if is_small and len(urls) <= BATCH_URLS_MAX:
                self._add_batch(partition, urls)
                continue
            for portion in _portions(urls):
                self._add_batch(partition, portion)
        for partition in list(self._contents):
            self._add_batch(partition, ())
        for hints in (self._link_graph, self._votes):
            for partition in hints.overdue() if hints is not None else ():
                self._add_batch(partition, ())
        self._waiting_bytes = 0
        self._sealed = self.offered
        if not self._unsent:
            self.flushed = self._sealed

    def _mind_hints(self) -> None:
        """Let hints go with what goes now, if they have waited for others long enough.

        A few never go alone: those of a crawl's last pages would come after its end, and whoever starts it again would
        have something to fold.
        """
        now_ms = self._clock.monotonic_ms()
        if not self._hints or now_ms - self._hinted_ms < self._hints_ms:
            return
        if not (self._waiting or self._contents or _bytes_in(self._hints) >= HINTS_ALONE_BYTES):
            return
        hints, self._hints, self._hinted_ms = self._hints, {}, now_ms
        for partition, rows_by_kind in hints.items():
            for kind, rows in zip(RowKind, rows_by_kind, strict=True):
                if rows:
                    _add_row(self._contents, ContentRow(partition, rows, kind))

    def _add_batch(self, partition: int, urls: Sequence[QueuedUrl]) -> None:
        number = self._numbers.get(partition, 0) + 1
        self._numbers[partition] = number
        edges = self._link_graph.take(partition) if self._link_graph is not None else b""
        votes = self._votes.take(partition) if self._votes is not None else b""
        session = self._sessions.get(partition, 1)
        rows = self._contents.pop(partition, ())
        contents = pack_contents(*rows)
        data = b"" if contents and not urls else encode_batch(urls)
        batch = _Batch(partition, session, number, data, len(urls), edges, votes, contents, self._sealed)
        self._unsent.append(batch)
        self._unsent_bytes += batch.size

    def _next_batches(self) -> list[_Batch]:
        """The batches that may be sent now: one session of each inbox, because a later one would shut out the rest."""
        if not self._sessions:
            return list(self._unsent)
        sessions: dict[int, int] = {}
        return [batch for batch in self._unsent if sessions.setdefault(batch.partition, batch.session) == batch.session]

    def _call(self, batch: _Batch) -> scripts.Call[str | None]:
        keys = partition_keys(self._crawl, batch.partition)
        hints = batch.edges, batch.votes, batch.contents
        return scripts.append_batch(keys, self._node, batch.session, batch.number, batch.data, batch.urls, *hints)

    def _note_sent(self, batches: list[_Batch], results: list[Any], running_ms: int) -> BigcrawlError | None:
        """Keep the batches that were not taken, in their order. Begin a new session of each inbox that has forgotten.

        Returns:
            The first error among the results.
        """
        failed: BigcrawlError | None = None
        taken: set[int] = set()  # by identity
        held_up: set[int] = set()  # partitions with a batch that was not taken
        forgetful: set[int] = set()
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, str):
                taken.add(id(batch))
                (self._flushed_partitions if batch.data else self._told_partitions).add(batch.partition)
                self._tell_sent(batch.partition, batch.urls)
                self._sent.append((running_ms, batch))
                self._sent_bytes += batch.size
                if result:
                    self.unfolded.note(batch.partition, result, batch.weight)
                continue
            if isinstance(result, BigcrawlError):
                failed = failed or result
            elif batch.partition not in held_up:
                forgetful.add(batch.partition)
            held_up.add(batch.partition)
        if len(taken) == len(self._unsent):
            self._unsent.clear()
        else:
            self._unsent = deque(batch for batch in self._unsent if id(batch) not in taken)
        for partition in forgetful:
            self._begin_session(partition)
        self._unsent_bytes = sum(batch.size for batch in self._unsent)
        self.flushed = max(self.flushed, self._unsent[0].offered_before if self._unsent else self._sealed)
        return failed

    def _begin_session(self, partition: int) -> None:
        """Number the batches for the partition from 1."""
        session = self._sessions[partition] = self._sessions.get(partition, 1) + 1
        number = 0
        for at, batch in enumerate(self._unsent):
            if batch.partition == partition:
                number += 1
                self._unsent[at] = batch._replace(session=session, number=number)
        self._numbers[partition] = number

    def _forget_safe(self, running_ms: int) -> None:
        while self._sent:
            keep_ms = KEEP_SENT_MS if self._sent_bytes < OUTBOX_BYTES_MAX else FORGETTABLE_MS
            if self._sent[0][0] >= running_ms - keep_ms:
                return
            self._sent_bytes -= self._sent.popleft()[1].size


def _add_row(waiting: dict[int, list[bytearray]], row: ContentRow) -> None:
    rows_by_kind = waiting.get(row.partition)
    if rows_by_kind is None:
        rows_by_kind = waiting[row.partition] = [bytearray() for _ in RowKind]
    rows_by_kind[row.kind] += row.rows


def _bytes_in(waiting: dict[int, list[bytearray]]) -> int:
    return sum(len(rows) for rows_by_kind in waiting.values() for rows in rows_by_kind)


def _to_nobody(_partition: int, _urls: int) -> None:
    """Does nothing: nobody counts what was sent."""


def _portions(urls: list[QueuedUrl]) -> Iterator[list[QueuedUrl]]:
    """Cut URLs into bounded batches, in their order."""
    start = size = 0
    for at, url in enumerate(urls):
        if at - start >= BATCH_URLS_MAX or (size + len(url.body) > BATCH_BYTES_MAX and at > start):
            yield urls[start:at]
            start, size = at, 0
        size += len(url.body)
    yield urls[start:] if start else urls
