"""A URL that a node has taken and not yet acknowledged (steps 9 to 14)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.passage import UNASKED

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import Ended
    from bigcrawl.scheduler.records.member import Member
    from bigcrawl.scheduler.records.passage import Passage, Space
    from bigcrawl.scheduler.records.suspicion import Suspicion


class Stage(Enum):
    """Where a held URL stands."""

    WAITING = "waiting"
    BUFFERED = "buffered"
    ROBOTS = "robots"  # the robots.txt of its host is being fetched first
    STARTED = "started"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class HeldUrl:
    """One taken URL. The downloader sets `outcome` and `download_ms`."""

    partition: int
    host: str
    due_ms: int  # monotonic clock
    member: bytes
    fields: Member
    url: str
    authority: str
    stage: Stage = Stage.WAITING
    outcome: str = ""
    fetched_bytes: int = 0
    download_ms: int = 0
    next_try: bytes = b""
    retry_after_ms: int = 0  # the delay that its response asked for
    next_order: int | None = None  # where the next try goes in its host's queue; None: where this one was
    said: str = ""  # what its host did when it was not fetched: one of `ANSWERS`, or why it failed
    is_slow: bool = False  # it uses one of the fetches that slow hosts may have
    fetching_since_ms: int = -1  # monotonic; -1: not being fetched, or already answered
    ended_ms: int = 0  # monotonic; when the engine was seen to have finished it
    crawl_delay_ms: int | None = None  # the crawl delay in its authority's robots.txt
    address: str = ""
    passage: Passage = UNASKED  # the start that its gates granted, or the last one it missed
    gaps: tuple[Space, ...] = ()  # gaps that its start keeps to other starts of this node
    has_errback: bool = False
    refusal: str = ""  # why it is not fetched, if only its errback is left to run: a reason, or error:<kind>
    unanswered: str = ""  # error:<kind>, if the fetch of its robots.txt got no answer
    detail: int = 0  # of its outcome, see `bigcrawl.scheduler.records.outcomes`
    remark: bytes = b""  # rows to send with its outcome: what its page shows about its PLD
    end: Ended | None = None  # how it ended; None until then
    offered: int = 0  # the outbox's count at its end: those URLs must be safe before it is acknowledged
    pages: int = 0  # the page storage's count at its end: likewise
    is_told: bool = False  # its end was sent to Redis, which may have it
    is_heard: bool = False  # Redis has confirmed its end
    suspicion: Suspicion | None = None  # set if it may have killed a node
    slot: int = 0  # its slot in the file of URLs in process, see `in_process`

    @property
    def seq(self) -> int:
        return self.fields.seq
