"""A URL that a node has taken and not yet acknowledged (steps 9 to 14)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.outcomes import rule_hash
from bigcrawl.scheduler.records.passage import ANY_TIME, UNASKED, Start
from bigcrawl.scheduler.records.queued_url import ASKED

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import Ended
    from bigcrawl.scheduler.records.contents import ContentRow
    from bigcrawl.scheduler.records.member import Member
    from bigcrawl.scheduler.records.passage import Passage, Space
    from bigcrawl.scheduler.records.revisits import Revisit
    from bigcrawl.scheduler.records.suspicion import Suspicion


class Stage(Enum):
    """Where a held URL stands."""

    WAITING = "waiting"
    BUFFERED = "buffered"
    ROBOTS = "robots"  # the robots.txt of its host is being fetched first, or its own head
    STARTED = "started"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class HeldUrl:
    """One taken URL, and what becomes of it. Everybody may read its fields; only its methods write them."""

    partition: int
    host: str
    due_ms: int  # monotonic clock; with `due_us` rounded up
    member: bytes
    fields: Member
    url: str
    authority: str
    has_errback: bool = False
    due_us: int = 0  # the same as its lane knows it; 0: not so exactly

    stage: Stage = Stage.WAITING
    # What the gates found.
    address: str = ""
    crawl_delay_ms: int | None = None  # the crawl delay in its authority's robots.txt
    gaps: tuple[Space, ...] = ()  # gaps that its start keeps to other starts of this node
    passage: Passage = UNASKED  # the start that its gates granted, or the last one it missed
    host_report: str = ""  # what its host did when it was not fetched: `ANSWERS`, or why it failed; empty: nothing
    robots_failure: str = ""  # error:<kind>, if the fetch of its robots.txt got no answer
    rest_after_head_ms: int = -1  # how long its host rests after the HEAD that was sent; -1: none was
    refusal: str = ""  # why it is not fetched, if only its errback is left to run: a reason, or error:<kind>
    refusal_error: Exception | None = None  # the error by which it fails, if it is not that of the refusal
    suspicion: Suspicion | None = None  # set if it may have killed a node
    # Its fetch.
    fetching_since_ms: int = -1  # monotonic; -1: not being fetched, or already answered
    uses_slow_share: bool = False  # it uses one of the fetches that slow hosts may have
    slot: int = 0  # its slot in the file of URLs in process, see `in_process`
    outcome: str = ""
    download_ms: int = 0
    fetched_bytes: int = 0
    retry_after_ms: int = 0  # the delay that its response asked for
    pld_rows: bytes = b""  # rows to send with its outcome: what its page shows about its PLD
    payload: tuple[bytes, bytes] | None = None  # its answer's body, and the SHA-1; while the engine has its request
    content: int = 0  # the key of what its page contains, see `bigcrawl.content.exact_copies`
    content_rows: tuple[ContentRow, ...] = ()  # what to tell of it; empty when it was told, or there is nothing
    is_content_sketched: bool = False  # whether a sketch of it was made, if it is long enough for one
    next_try: bytes = b""
    next_order: int | None = None  # where the next try goes in its host's queue; None: where this one was
    answered_ms: int = 0  # monotonic; when the last fetch was over, whatever came of it
    rest_ms: int = -1  # how long its host rests since then, if the fetch went well; -1: its end says that
    is_visited: bool = False  # what its visit brought is noted
    revisit: Revisit | None = None  # its next visit, if it ends now
    # Its end.
    ended_ms: int = 0  # monotonic; when the engine was seen to have finished it
    detail: int = 0  # of its outcome, see `bigcrawl.scheduler.records.outcomes`
    end: Ended | None = None  # how it ended; None until then
    offered_at_end: int = 0  # the outbox's count then: those URLs must be safe before it is acknowledged
    pages_at_end: int = 0  # the page storage's count then: likewise
    end_rows: bytes = b""  # what its inbox was told of its end, but for its revisit
    is_end_sent: bool = False  # Redis may have its end
    is_end_confirmed: bool = False  # Redis has its end

    @property
    def seq(self) -> int:
        return self.fields.seq

    @property
    def owes_content(self) -> bool:
        """Whether it has ended for good, and partitions were not told yet what its page contains."""
        return bool(self.content_rows) and self.end is not None and not self.end.member

    def sha1_of(self, body: bytes) -> bytes | None:
        """The SHA-1 of a body if it is that of its answer; None if it was unpacked since, or not stored."""
        payload = self.payload
        return payload[1] if payload is not None and payload[0] is body else None

    # --- at the gates

    def note_address(self, address: str) -> None:
        """Its host is asked at this address; empty if a proxy finds it."""
        self.address = address

    def note_crawl_delay(self, crawl_delay_ms: int | None) -> None:
        """The rules allow it, and ask for this delay."""
        self.crawl_delay_ms = crawl_delay_ms

    def begin_robots_fetch(self) -> None:
        """The robots.txt of its authority is fetched in its place, or its head."""
        self.stage = Stage.ROBOTS

    def note_asked(self, rest_ms: int) -> None:
        """Note that a HEAD was sent in its place, and is not sent again. Its host rests for this time."""
        self.fields = self.fields._replace(flags=self.fields.flags | ASKED)
        self.rest_after_head_ms = rest_ms

    def note_robots_failure(self, error: str) -> None:
        """That fetch got no answer, because of the host if there is an error."""
        self.robots_failure = error

    def note_host_report(self, report: str) -> None:
        """Something else than the URL itself was asked of its host, which answered or failed."""
        self.host_report = report

    def note_report_time(self, now_ms: int) -> None:
        """What was asked of its host instead of it is over: a page that was answered before says nothing new."""
        self.answered_ms = now_ms

    def hold_host(self, start: Start) -> None:
        """Its host is held above the crawls, so that it may start."""
        self.passage = self.passage._replace(of_host=start)

    def lose_host(self) -> None:
        """It was too late: its host is held no more, and it must not start without."""
        self.passage = self.passage._replace(of_host=Start(0, 0))

    def leave_host(self) -> None:
        """It does not need its host any more."""
        self.passage = self.passage._replace(of_host=ANY_TIME)

    def grant_start(self, passage: Passage, gaps: tuple[Space, ...]) -> None:
        """The gates of its spaces and its server grant a start, and it is due then; its host is held as before."""
        self.passage = passage._replace(of_host=self.passage.of_host)
        self.due_ms, self.due_us = passage.at_ms, 0
        self.gaps = gaps

    def await_turn(self, due_us: int) -> None:
        """Its host's next turn is its own, and comes then."""
        self.due_ms, self.due_us = -(-due_us // 1_000), due_us

    # --- between the gates and the engine

    def enter_buffer(self) -> None:
        """It may be fetched now, and waits for the engine."""
        self.stage = Stage.BUFFERED

    def leave_buffer(self) -> None:
        """It leaves the engine's buffer, and waits for a later start."""
        self.stage = Stage.WAITING

    def ask_again(self, now_ms: int) -> None:
        """It has missed its start, and asks its gates for another one from now on."""
        self.stage = Stage.WAITING
        self.due_ms, self.due_us = now_ms, 0

    def refuse(self, why: str, error: Exception | None = None) -> None:
        """It is not fetched; the engine gets it all the same, for its errback, which may be told this very error."""
        self.stage = Stage.WAITING
        self.refusal = why
        self.refusal_error = error

    def lose(self, why: str) -> None:
        """The engine takes it, but its request has been lost, and only its errback is left to run."""
        self.refusal = why

    def forbid(self, rule: str) -> None:
        """It ends unfetched, because of this line of robots.txt; empty if it is for another reason."""
        self.detail = rule_hash(rule) if rule else 0

    def note_filtered(self, rule: int) -> None:
        """A filter drops its page, by the rule of this number."""
        self.detail = rule

    def suspect(self, suspicion: Suspicion) -> None:
        """It may have killed a node."""
        self.suspicion = suspicion

    # --- its fetch

    def start(self, now_ms: int) -> None:
        """The engine takes it."""
        self.stage = Stage.STARTED
        self.fetching_since_ms = now_ms

    def take_slow_share(self) -> None:
        """Its fetch counts towards those of slow hosts."""
        self.uses_slow_share = True

    def return_slow_share(self) -> None:
        """It does not count towards them any more."""
        self.uses_slow_share = False

    def enter_process(self, slot: int) -> None:
        """The engine has its request, which is on record in this slot."""
        self.slot = slot

    def leave_process(self) -> None:
        """The engine is done with its request."""
        self.slot = 0

    def stop_fetching(self, now_ms: int) -> None:
        """Its fetch is over, whatever came of it."""
        self.fetching_since_ms = -1
        self.answered_ms = now_ms

    def free_host(self, rest_ms: int) -> None:
        """Its fetch went well, and its host is free after this rest, whatever becomes of the page."""
        self.rest_ms = rest_ms

    def note_outcome(self, outcome: str) -> None:
        """What has come of it, as its counter is called."""
        self.outcome = outcome

    def note_download(self, outcome: str, download_ms: int, body_bytes: int = 0) -> None:
        """Note the end of a download and the time it took. If it is downloaded more than once, the bytes add up."""
        self.outcome = outcome
        self.download_ms = download_ms
        self.fetched_bytes += body_bytes

    def note_retry_after(self, retry_after_ms: int) -> None:
        """Note for how long its host has asked to be left alone; 0 if it has not."""
        self.retry_after_ms = retry_after_ms

    def note_pld_rows(self, rows: bytes) -> None:
        """Its page shows this about its PLD."""
        self.pld_rows = rows

    def note_payload(self, body: bytes, sha1: bytes) -> None:
        """Its answer has this body, with this SHA-1."""
        self.payload = body, sha1

    def note_content(self, content: int, rows: tuple[ContentRow, ...]) -> None:
        """Note the key of its page's content, and the rows that tell partitions of it."""
        self.content = content
        self.content_rows = rows
        self.is_content_sketched = False

    def note_sketch(self, content: int, rows: tuple[ContentRow, ...]) -> None:
        """These rows tell of the sketch of a content that it has, or had before it was tried again."""
        if content == self.content and not self.is_content_sketched:
            self.content_rows += rows
            self.is_content_sketched = True

    def note_content_offered(self, offered: int) -> None:
        """Note that its rows are in the outbox; `offered` is how much the outbox had been offered then."""
        self.content_rows = ()
        self.offered_at_end = offered

    def note_revisit(self, revisit: Revisit | None) -> None:
        """When it ends now, it is visited again like this; None: not again. What its visit brought is noted."""
        self.is_visited = True
        self.revisit = revisit

    def try_again(self, member: bytes, order: int | None) -> None:
        """It has failed, and goes back to its host's queue as this member; behind others if there is an order."""
        self.next_try = member
        if order is not None:
            self.next_order = order

    def go_behind(self, order: int) -> None:
        """It goes back to its host's queue, behind others."""
        self.next_order = order

    def finish(self, now_ms: int) -> None:
        """The engine is done with it."""
        self.ended_ms = now_ms
        self.payload = None

    # --- its end

    def note_end(self, end: Ended, *, offered: int, pages: int) -> None:
        """Note its end, and how many URLs the outbox and how many pages the storage had been offered by then."""
        self.stage = Stage.ENDED
        self.end = end
        self.offered_at_end = offered
        self.pages_at_end = pages

    def abandon(self) -> None:
        """This node will not fetch it any more, whatever it was waiting for; there is no end to tell."""
        self.stage = Stage.ENDED

    def note_end_sent(self, rows: bytes) -> None:
        """Its end is sent to Redis, with these rows for the inbox."""
        self.end_rows = rows
        self.is_end_sent = True

    def confirm_end(self) -> None:
        """Redis has its end."""
        self.is_end_confirmed = True
