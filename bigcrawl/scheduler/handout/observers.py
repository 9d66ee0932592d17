"""Features' observations of a node's pages, on the way to partitions. Only `send` waits.

    answer, look-up -> marks: they go with the outcome of the URL, to the partition of its PLD
    page given to its spider -> rows at its held URL -> [page safe] -> outbox -> inboxes
                             -> hints -> outbox -> inboxes, whether or not the page is stored

Rows leave the node only once their page is stored, so they describe only pages that the crawl has. The page is
acknowledged after its rows, at no extra round trip. If the node dies before that, the page is fetched
and its rows are sent again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bigcrawl.content.exact_copies import content_key
from bigcrawl.feature_list import modules_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Iterable, Mapping

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.held_urls import HeldUrls
    from bigcrawl.scheduler.records.observed import ObservedRows
    from bigcrawl.scheduler.rules.budget_rules import Limit
    from bigcrawl.url.key import PldKey

    Headers = dict[Any, Any]

T = TypeVar("T", bound="Observer")


class TakesRows(Protocol):
    """Sends rows; in a node, `node.outbox.Outbox`."""

    @property
    def offered(self) -> int:
        """The number of URLs and rows offered so far."""

    def offer_rows(self, rows: ObservedRows) -> None:
        """Take rows for a partition."""

    def offer_hint(self, rows: ObservedRows) -> None:
        """Take rows that may be lost without harm."""


class WaitingRows(Protocol):
    """Rows of one kind that travel with batches to their partitions. They may be lost without harm."""

    @property
    def kind(self) -> int:
        pass

    def take(self, partition: int) -> bytes:
        """Take the rows of a partition; empty if it has none."""

    def overdue(self) -> list[int]:
        """Return the partitions with enough waiting rows for an extra batch."""


class PageLinks(Protocol):
    """Records the links of a page as its spider yields them."""

    def add(self, urls: Iterable[str], priority: int) -> None:
        """Record links to canonical URLs."""

    def end(self) -> None:
        """Record that the spider is done with the page."""


class NodeSide:
    """The interface of a node to features: the base class of `node.assembly.FeatureSide`.

    Attributes:
        carry: sends rows along with batches; they may be lost without harm.
        key_of: returns the key of any bytes, once the node has joined its crawl.
        look_up: returns the addresses of a name, or raises DnsError.
        was_fetched: whether a held URL's page was fetched before.
        limited: the names of limits that some rule sets by hand now.
        limit_of: returns a limit of a host's URL, by its name; None if no rule sets it.
        reports: returns the last report of each live node, by node id.
        repeated: returns how many links were dropped because they had been sent recently.
        announce: announces an event, by its name, to the code that runs beside the node.
    """

    config: Config
    offer_hint: Callable[[ObservedRows], None]
    carry: Callable[[WaitingRows], None]
    pld_of: Callable[[str], str]
    pld_key: Callable[[str], PldKey]
    key_of: Callable[[bytes], int]
    look_up: Callable[[str], Awaitable[list[str]]]
    was_fetched: Callable[[HeldUrl], bool]
    limited: Container[str]
    limit_of: Callable[[str, str, str], Limit | None]
    client: RedisClient
    clock: Clock
    node: str
    reports: Callable[[], Mapping[str, Mapping[str, Any]]]
    partitions: int
    repeated: Callable[[], int]
    sent_bytes: Callable[[], int]
    announce: Callable[[str, Mapping[str, Any]], None]


class Gist:
    """A key that nearly equal pages share; until the page's rows are completed, or for good, that of the content."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def complete(self, key: int) -> None:
        self.key = key


class SeenPage:
    """A decoded page that its spider gets, not empty; `gist` is None if no feature makes any."""

    __slots__ = ("_content", "body", "gist", "held", "is_text")

    def __init__(self, held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        self.held = held
        self.body = body
        self.is_text = is_text
        self.gist: Gist | None = None
        self._content: int | None = None

    def add_gist(self, key: int) -> Gist:
        self.gist = Gist(key)
        return self.gist

    @property
    def content(self) -> int:
        if self._content is None:
            sha1 = self.held.sha1_of(self.body) or hashlib.sha1(self.body, usedforsecurity=False).digest()
            self._content = content_key(sha1)
        return self._content


class Observer:
    """The observations of one feature, which overrides the methods it needs; its `page` has `observer_of(NodeSide)`."""

    def record_answer(self, held: HeldUrl, body: bytes) -> bytes:
        """Observe an answer with status 200. Return marks to send with its outcome, if any."""
        return b""

    def record_headers(self, status: int, headers: Headers, body_bytes: int) -> None:
        """Observe any answer; `body_bytes` counts its body as transferred."""

    def record_unpacked(self, packed_bytes: int, body_bytes: int) -> None:
        """Observe that the body of an answer with status 200 was unpacked."""

    def before_end(self, held: HeldUrl, reason: str) -> None:
        """Observe that a URL is about to end for good; `HeldUrl.record_retry` makes the crawl fetch it again."""

    def was_fetched(self, held: HeldUrl) -> bool:
        """Whether the feature knows that the page of this URL was fetched before."""
        return False

    def record_end(self, held: HeldUrl) -> None:
        """Observe that a URL has ended with an answer, and Redis has recorded it."""

    def record_robots(self, status: int | None, body_bytes: int) -> None:
        """Observe the answer to a request for robots.txt; status None if there was none."""

    def record_gap(self, kind: str, name: str, gap_ms: int, due_ms: int) -> None:
        """Observe the gap kept between two fetches of a `host`, a `server` or a `space`."""

    def record_sent(self, urls: int, *, is_elsewhere: bool) -> None:
        """Observe that URLs were sent to an inbox, even of another node's partition."""

    def record_look_up(self, pld: str) -> None:
        """Observe that a name of a PLD was looked up."""

    def marks_of_end(self, held: HeldUrl) -> bytes:
        """Return marks to send with the end of a URL. Called again if the end is sent again."""
        return b""

    def reported(self) -> Mapping[str, Any]:
        return {}

    async def send(self, *, is_last: bool) -> None:
        """Send due data to Redis: about once a second, and when the node leaves. Raises TransientStoreError."""

    def delay_end(self, ended: int) -> bool:
        """Whether to delay the end of a crawl in which all URLs (`ended`) have ended; asked every second."""
        return False

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        return ()

    def links_of(self, held: HeldUrl) -> PageLinks:
        raise NotImplementedError

    def complete(self) -> None:
        """Complete the rows of pages: some pages are safe, and their rows are about to leave."""

    def record_offered(self, rows: tuple[ObservedRows, ...]) -> None:
        """Observe that the rows of a page have left."""

    def send_again(self) -> None:
        """Forget what was sent, because Redis may have forgotten it."""

    async def close(self) -> None:
        """End pending work."""


class Observers:
    """The observers of a node. A feature costs a page nothing for methods that it does not override.

    Attributes:
        record_headers, record_unpacked, record_end, record_robots, record_sent: call the observers' methods.
        record_gap, before_end: likewise; None if no observer has the method.
    """

    def __init__(self, held: HeldUrls, outbox: TakesRows, observers: Iterable[Observer]) -> None:
        self.held = held
        self._outbox = outbox
        self.all = tuple(observers)
        self._of = {type(one): one for one in self.all}
        self._record_answer = self._observers_with("record_answer")
        self._record_look_up = self._observers_with("record_look_up")
        self.marks_of_end = self._observers_with("marks_of_end")
        self._send = self._observers_with("send")
        self._delay_end = self._observers_with("delay_end")
        self._rows_of = self._observers_with("rows_of")
        self._links_of = self._observers_with("links_of")
        self._complete = self._observers_with("complete")
        self._record_offered = self._observers_with("record_offered")
        self.record_headers = self._call_each("record_headers") or _do_nothing
        self.record_unpacked = self._call_each("record_unpacked") or _do_nothing
        self.record_end = self._call_each("record_end") or _do_nothing
        self.record_robots = self._call_each("record_robots") or _do_nothing
        self.record_sent = self._call_each("record_sent") or _do_nothing
        self.record_gap = self._call_each("record_gap")
        self.before_end = self._call_each("before_end")
        self._was_fetched = self._observers_with("was_fetched")
        self._reported = self._observers_with("reported")

    @classmethod
    def of_node(cls, held: HeldUrls, outbox: TakesRows, side: NodeSide) -> Observers:
        made = (module.observer_of(side) for module in modules_on("page", side.config))
        return cls(held, outbox, (observer for observer in made if observer is not None))

    def _observers_with(self, name: str) -> tuple[Callable[..., Any], ...]:
        default = getattr(Observer, name)
        return tuple(getattr(one, name) for one in self.all if getattr(type(one), name) is not default)

    def _call_each(self, name: str) -> Callable[..., None] | None:
        """Return a function that calls this method of each observer that has it; None if none has."""
        calls = self._observers_with(name)

        def call_each(*args: Any, **named: Any) -> None:
            for call in calls:
                call(*args, **named)

        return call_each if len(calls) > 1 else calls[0] if calls else None

    def observer_of(self, shape: type[T]) -> T | None:
        """Return the observer of a feature, given its class; None if it does not observe."""
        found = self._of.get(shape)
        assert found is None or isinstance(found, shape), "it is stored by its class"
        return found

    def was_fetched(self, held: HeldUrl) -> bool:
        return bool(self._was_fetched) and any(knows(held) for knows in self._was_fetched)

    def reported(self) -> dict[str, Any]:
        return {name: value for reported in self._reported for name, value in reported().items()}

    def record_answer(self, held: HeldUrl, body: bytes) -> None:
        if self._record_answer:
            held.record_marks(b"".join([note(held, body) for note in self._record_answer]))

    def record_look_up(self, pld: str) -> None:
        for note in self._record_look_up:
            note(pld)

    def record_page(self, held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        if body and self._rows_of:
            page = SeenPage(held, body, is_text=is_text)
            held.record_rows(tuple([row for rows_of in self._rows_of for row in rows_of(page)]))

    def links_of(self, held: HeldUrl) -> tuple[PageLinks, ...]:
        return tuple([links_of(held) for links_of in self._links_of])

    def send_safe(self) -> None:
        """Offer to the outbox the rows of ended URLs whose pages are safe."""
        if not self._rows_of:
            return
        outbox = self._outbox
        safe = self.held.safe_with_rows()
        if safe:
            for complete in self._complete:
                complete()
        for held in safe:
            for rows in held.rows:
                outbox.offer_rows(rows)
            for note in self._record_offered:
                note(held.rows)
            held.record_rows_offered(outbox.offered)

    async def send(self, *, is_last: bool = False) -> None:
        for send in self._send:
            await send(is_last=is_last)

    def hold_end(self, ended: int) -> bool:
        return any([holds(ended) for holds in self._delay_end])  # noqa: C419 - each is asked

    def send_again(self) -> None:
        for one in self.all:
            one.send_again()

    async def close(self) -> None:
        for one in self.all:
            await one.close()


def _do_nothing(*args: object, **named: object) -> None:
    pass
