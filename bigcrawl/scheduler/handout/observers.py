"""What features observe of a node's pages, on the way to partitions (steps 9 to 14). Only `send` waits.

    answer, look-up -> marks: they go with the outcome of the URL, to the partition of its PLD
    page given to its spider -> rows at its held URL -> [page safe] -> outbox -> inboxes
                             -> hints -> outbox -> inboxes, whatever becomes of the page

Rows leave the node only once their page is stored, so they tell of nothing that the crawl does not have. Then they go
with the next batches, and the page is acknowledged after them, in the round trip in which it would be acknowledged
anyway. If the node dies before that, the page is fetched again and its rows come again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bigcrawl.content.exact_copies import content_key
from bigcrawl.feature_list import modules_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Iterable, Mapping

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.held_urls import HeldUrls
    from bigcrawl.scheduler.records.observed import ObservedRows
    from bigcrawl.scheduler.rules.rule_book import Limit
    from bigcrawl.url.key import PldKey

    Headers = dict[Any, Any]
    """Lists of values, by name."""

T = TypeVar("T", bound="Observer")


class TakesRows(Protocol):
    """Where rows leave the node; in a node, `node.outbox.Outbox`."""

    @property
    def offered(self) -> int:
        """How many URLs and rows it has been offered so far."""

    def offer_rows(self, rows: ObservedRows) -> None:
        """Take rows for a partition."""

    def offer_hint(self, rows: ObservedRows) -> None:
        """Take rows that may be lost."""


class WaitingRows(Protocol):
    """Rows of one kind that go with batches to their partitions. Those that are lost are missed, and nothing else."""

    @property
    def kind(self) -> int:
        """Their kind."""

    def take(self, partition: int) -> bytes:
        """Take those for a partition; empty if there are none."""

    def overdue(self) -> list[int]:
        """Return the partitions for which so many wait that they are worth a batch."""


class PageLinks(Protocol):
    """Notes the links of a page as its spider gives them."""

    def add(self, urls: Iterable[str], priority: int) -> None:
        """The page links to these canonical URLs, with this priority."""

    def end(self) -> None:
        """The spider is done with the page: there are no more."""


class NodeSide:
    """What a feature may ask of its node: the base class of `node.assembly.FeatureSide`.

    Attributes:
        config: the settings.
        offer_hint: takes rows that may be lost.
        carry: has such rows taken along with batches.
        pld_of: returns the PLD of a host.
        pld_key: returns the key of a PLD.
        key_of: returns the key of any bytes, once the node has joined its crawl.
        look_up: returns the addresses of a name, or raises DnsError.
        was_fetched: whether a held URL's page was fetched before, and it has come again.
        limited: the names of limits that some rule sets by hand now.
        limit_of: returns a limit of a host's URL, by its name; None if no rule sets it.
        client: the crawl's Redis.
        clock: of all parts.
        node: its id.
        reports: returns the last report of each live node, by its id.
        partitions: how many the crawl has.
        repeated: returns how many links were not sent so far because they had been sent lately.
        sent_bytes: returns how many bytes of requests were sent so far.
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


class SeenPage:
    """A page that its spider is given, without content encoding.

    Attributes:
        held: its URL, not yet ended.
        body: its bytes, at least one.
        is_text: whether it is HTML or other text.
    """

    __slots__ = ("_content", "body", "held", "is_text")

    def __init__(self, held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        self.held = held
        self.body = body
        self.is_text = is_text
        self._content: int | None = None

    @property
    def content(self) -> int:
        """The key of its content. Cost: 1 us if the page was stored as it is; else a SHA-1, 13 us for 21 KB."""
        if self._content is None:
            sha1 = self.held.sha1_of(self.body) or hashlib.sha1(self.body, usedforsecurity=False).digest()
            self._content = content_key(sha1)
        return self._content


class Observer:
    """What one feature observes. A feature overrides what it needs. A module `page` has `observer_of(NodeSide)`."""

    def note_answer(self, held: HeldUrl, body: bytes) -> bytes:
        """Note an answer with status 200. Return marks to send with its outcome, usually none."""
        return b""

    def note_headers(self, status: int, headers: Headers, body_bytes: int) -> None:
        """A fetch was answered, with a body of so many bytes as transferred."""

    def note_unpacked(self, packed_bytes: int, body_bytes: int) -> None:
        """The body of an answer with status 200 was unpacked."""

    def before_end(self, held: HeldUrl, reason: str) -> None:
        """A URL is about to end for good, perhaps unfetched for a reason. `HeldUrl.note_again` lets it come again."""

    def was_fetched(self, held: HeldUrl) -> bool:
        """Whether it knows that a URL has come again, and what its page was before."""
        return False

    def note_end(self, held: HeldUrl) -> None:
        """A URL has ended with an answer, and Redis has its end."""

    def note_robots(self, status: int | None, body_bytes: int) -> None:
        """A request for robots.txt was answered; None: it was not."""

    def note_gap(self, kind: str, name: str, gap_ms: int, due_ms: int) -> None:
        """A gap was kept between two fetches, of this name: of a `host`, a `server` or a `space`."""

    def note_sent(self, urls: int, *, is_elsewhere: bool) -> None:
        """URLs were sent to an inbox, perhaps of a partition that another node owns."""

    def note_look_up(self, pld: str) -> None:
        """A name of a PLD was looked up."""

    def marks_of_end(self, held: HeldUrl) -> bytes:
        """Note the end of a URL, again if it is sent again. Return marks to send with it."""
        return b""

    def reported(self) -> Mapping[str, Any]:
        """Return fields of the node's report."""
        return {}

    async def send(self, *, is_last: bool) -> None:
        """Send Redis what is due: about once a second, and when the node leaves.

        Raises:
            TransientStoreError: Redis is away.
        """

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        """Return the rows to send once the page is safe."""
        return ()

    def links_of(self, held: HeldUrl) -> PageLinks:
        """Its spider is given a page: return what notes its links."""
        raise NotImplementedError

    def complete(self) -> None:
        """Add what is still to be added to the rows of pages: some of them are safe, and leave now."""

    def note_offered(self, rows: tuple[ObservedRows, ...]) -> None:
        """The rows of a page have left."""

    def send_again(self) -> None:
        """Redis may have forgotten rows: send what comes from now on, even if it was sent before."""

    async def close(self) -> None:
        """End what is under way."""


class Observers:
    """The observers of a node. A feature costs a page nothing for what it does not observe.

    Args:
        held: the URLs of the node.
        outbox: where rows leave the node.
        observers: of its features.

    Attributes:
        held: the URLs of the node.
        marks_of_end: called with each URL that has ended, see `Observer.marks_of_end`.
        all: the observers.
        note_headers, note_unpacked, note_end, note_robots, note_sent: tell them of it.
        note_gap, before_end: likewise; None if none of them asks for it.
    """

    def __init__(self, held: HeldUrls, outbox: TakesRows, observers: Iterable[Observer]) -> None:
        self.held = held
        self._outbox = outbox
        self.all = tuple(observers)
        self._of = {type(one): one for one in self.all}
        self._note_answer = self._those_with("note_answer")
        self._note_look_up = self._those_with("note_look_up")
        self.marks_of_end = self._those_with("marks_of_end")
        self._send = self._those_with("send")
        self._rows_of = self._those_with("rows_of")
        self._links_of = self._those_with("links_of")
        self._complete = self._those_with("complete")
        self._note_offered = self._those_with("note_offered")
        self.note_headers = self._each("note_headers") or _ignore
        self.note_unpacked = self._each("note_unpacked") or _ignore
        self.note_end = self._each("note_end") or _ignore
        self.note_robots = self._each("note_robots") or _ignore
        self.note_sent = self._each("note_sent") or _ignore
        self.note_gap = self._each("note_gap")
        self.before_end = self._each("before_end")
        self._was_fetched = self._those_with("was_fetched")
        self._reported = self._those_with("reported")

    @classmethod
    def of_node(cls, held: HeldUrls, outbox: TakesRows, side: NodeSide) -> Observers:
        """Return those that the settings ask for."""
        made = (module.observer_of(side) for module in modules_of("page"))
        return cls(held, outbox, (observer for observer in made if observer is not None))

    def __repr__(self) -> str:
        return f"<Observers {self.all!r}>"

    def _those_with(self, name: str) -> tuple[Callable[..., Any], ...]:
        default = getattr(Observer, name)
        return tuple(getattr(one, name) for one in self.all if getattr(type(one), name) is not default)

    def _each(self, name: str) -> Callable[..., None] | None:
        """What calls the method of this name of those that have it: if one has, itself, so that it costs no more."""
        calls = self._those_with(name)

        def call_each(*args: Any, **named: Any) -> None:
            for call in calls:
                call(*args, **named)

        return call_each if len(calls) > 1 else calls[0] if calls else None

    def of(self, shape: type[T]) -> T | None:
        """Return the observer of a feature, given its class; None if it does not observe."""
        found = self._of.get(shape)
        assert found is None or isinstance(found, shape), "it is stored by its class"
        return found

    def was_fetched(self, held: HeldUrl) -> bool:
        """Whether a URL has come again, and one of them knows what its page was before."""
        return bool(self._was_fetched) and any(knows(held) for knows in self._was_fetched)

    def reported(self) -> dict[str, Any]:
        """Return fields of the node's report."""
        return {name: value for reported in self._reported for name, value in reported().items()}

    def note_answer(self, held: HeldUrl, body: bytes) -> None:
        """Note an answer with status 200 and a body."""
        if self._note_answer:
            held.note_marks(b"".join([note(held, body) for note in self._note_answer]))

    def note_look_up(self, pld: str) -> None:
        """A name of a PLD was looked up."""
        for note in self._note_look_up:
            note(pld)

    def note_page(self, held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        """Note the page of a URL that has not ended; an empty one says nothing."""
        if body and self._rows_of:
            page = SeenPage(held, body, is_text=is_text)
            held.note_rows(tuple([row for rows_of in self._rows_of for row in rows_of(page)]))

    def links_of(self, held: HeldUrl) -> tuple[PageLinks, ...]:
        """Return what notes the links of a page that its spider is given; usually nothing does."""
        return tuple([links_of(held) for links_of in self._links_of])

    def send_safe(self) -> None:
        """Offer the rows of ended URLs whose pages are safe to the outbox. Cost: 1 us each."""
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
            for note in self._note_offered:
                note(held.rows)
            held.note_rows_offered(outbox.offered)

    async def send(self, *, is_last: bool = False) -> None:
        """Send Redis what is due.

        Raises:
            TransientStoreError: Redis is away.
        """
        for send in self._send:
            await send(is_last=is_last)

    def send_again(self) -> None:
        """Redis may have forgotten rows."""
        for one in self.all:
            one.send_again()

    async def close(self) -> None:
        """End what is under way."""
        for one in self.all:
            await one.close()


def _ignore(*args: object, **named: object) -> None:
    """Nobody observes it."""
