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
    ROBOTS = "robots"  # its host's robots.txt is being fetched in its place
    STARTED = "started"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class HeldUrl:
    """One taken URL; `outcome` and `download_ms` are filled in by the downloader."""

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
    retry_after_ms: int = 0  # what its answer asked for
    next_order: int | None = None  # the next try's place in its host's queue, where that is not the old one
    said: str = ""  # of its host, when it was not fetched: `ANSWERS`, or why it failed
    is_slow: bool = False  # it has one of the fetches of slow hosts
    fetching_since_ms: int = -1  # monotonic; -1: it is not being fetched, or is answered
    ended_ms: int = 0  # monotonic; when the engine was seen to be done with it
    crawl_delay_ms: int | None = None  # what its authority's robots.txt asks for
    address: str = ""
    passage: Passage = UNASKED  # that its gates granted; the last one, when that was missed
    gaps: tuple[Space, ...] = ()  # that its start keeps to others of the node
    has_errback: bool = False
    refusal: str = ""  # why it is not fetched, when only its errback is left to run: a reason, or error:<kind>
    unanswered: str = ""  # error:<kind>, when its robots.txt was asked for and nobody answered
    detail: int = 0  # of its outcome, see `bigcrawl.scheduler.records.outcomes`
    remark: bytes = b""  # rows of the same, to be told with it: what its page says of its PLD
    end: Ended | None = None  # how it ended, once it has
    offered: int = 0  # the outbox's count then: what was offered until then is safe before it is acknowledged
    pages: int = 0  # the page storage's count then: likewise
    is_told: bool = False  # Redis may know of its end
    is_heard: bool = False  # and does
    suspicion: Suspicion | None = None  # of having ended a node
    slot: int = 0  # in the file of what is in process, see `in_process`

    @property
    def seq(self) -> int:
        return self.fields.seq
