"""A URL that a node has taken, while it waits at the gates: when it may start, and the evidence against it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.scheduler.records.queued_url import ASKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.records.member import Member

    Group = Callable[[str, str], str | None]

ALONE = "alone"


class Start(NamedTuple):
    """The time span in which a fetch may start, on the monotonic clock.

    `granted_ms` is on the crawls' clock; 0 if no gate was asked. Each missed start doubles the time span of the
    next one, so that a slow node still makes progress.
    """

    at_ms: int
    until_ms: int
    granted_ms: int = 0
    misses: int = 0


MISSED: Final = -1
"""Returned instead of a waiting time: the start was missed."""

ANY_TIME: Final = Start(0, 1 << 62)


class GrantedStarts(NamedTuple):
    of_spaces: Start = ANY_TIME
    of_server: Start = ANY_TIME
    of_host: Start = ANY_TIME  # granted if other crawls may fetch the host too

    @property
    def at_ms(self) -> int:
        return max(self.of_spaces.at_ms, self.of_server.at_ms)

    @property
    def until_ms(self) -> int:
        return min(self.of_spaces.until_ms, self.of_server.until_ms, self.of_host.until_ms)

    @property
    def misses(self) -> int:
        return max(self.of_spaces.misses, self.of_server.misses)


UNASKED: Final = GrantedStarts()


Space = tuple[str, int]
"""The name of a space, and its minimum gap between starts in ms."""


class Suspicion(NamedTuple):
    """The evidence against one URL; `answered` counts the deaths while the project's code had its page."""

    deaths: int
    answered: int
    was_alone: bool

    @classmethod
    def read(cls, text: bytes) -> Suspicion:
        deaths, answered, *mark = text.decode().split(" ")
        return cls(int(deaths), int(answered), mark == [ALONE])

    def is_proof(self, deaths_max: int) -> bool:
        return self.was_alone and (self.answered >= deaths_max or self.deaths >= 2 * deaths_max)

    def wants_solitude(self, deaths_max: int) -> bool:
        return self.deaths >= deaths_max - 1


class Stage(Enum):
    WAITING = "waiting"
    BUFFERED = "buffered"
    ROBOTS = "robots"  # its host's robots.txt, or a HEAD of the URL, is fetched first
    STARTED = "started"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class AtGates:
    partition: int
    host: str
    due_ms: int  # monotonic; `due_us` rounded up
    member: bytes
    fields: Member
    url: str
    authority: str
    has_errback: bool = False
    suspicion: Suspicion | None = None
    due_us: int = 0  # due time in its lane; 0 if only `due_ms` is known
    stage: Stage = Stage.WAITING
    address: str = ""
    crawl_delay_ms: int | None = None
    gaps: tuple[Space, ...] = ()  # minimum gaps to other starts of this node
    granted: GrantedStarts = UNASKED  # or the last starts that it missed
    host_report: str = ""  # `ANSWERS` or a failure, from another fetch to its host
    robots_failure: str = ""  # error:<kind>, if the fetch of robots.txt got no answer
    rest_after_head_ms: int = -1  # rest of its host after a HEAD; -1 if none was sent
    retry_after_ms: int = 0
    refusal: str = ""  # why only its errback still runs: a reason, or error:<kind>
    refusal_error: Exception | None = None  # the error for the errback, if it is not the usual one of the refusal

    @property
    def seq(self) -> int:
        return self.fields.seq

    @property
    def turn_us(self) -> int:
        return self.due_us or 1_000 * self.due_ms

    def go_to(self, stage: Stage) -> None:
        """Set the stage. With `ENDED`, the URL has left this node without an end to report."""
        self.stage = stage

    def record_address(self, address: str) -> None:
        self.address = address

    def record_crawl_delay(self, crawl_delay_ms: int | None) -> None:
        self.crawl_delay_ms = crawl_delay_ms

    def record_answer(self, retry_after_ms: int, failure: str = "") -> None:
        self.retry_after_ms = retry_after_ms
        self.robots_failure = failure

    def record_asked(self, rest_ms: int) -> None:
        self.fields = self.fields._replace(flags=self.fields.flags | ASKED)
        self.rest_after_head_ms = rest_ms

    def record_host_report(self, report: str) -> None:
        self.host_report = report

    def hold_host(self, start: Start) -> None:
        self.granted = self.granted._replace(of_host=start)

    def grant_start(self, granted: GrantedStarts, gaps: tuple[Space, ...]) -> None:
        self.granted = granted._replace(of_host=self.granted.of_host)
        self.due_ms, self.due_us = granted.at_ms, 0
        self.gaps = gaps

    def await_turn(self, due_us: int) -> None:
        """Set the due time in us, unless Redis granted the turn, in ms."""
        if due_us > 1_000 * self.due_ms:
            self.due_ms, self.due_us = -(-due_us // 1_000), due_us

    def ask_again(self, now_ms: int) -> None:
        self.stage = Stage.WAITING
        self.due_ms, self.due_us = now_ms, 0

    def refuse(self, why: str, error: Exception | None = None) -> None:
        self.refusal = why
        self.refusal_error = error
