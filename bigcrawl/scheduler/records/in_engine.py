"""A held URL, while the engine has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.at_gates import AtGates, Stage

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.observed import ObservedRows


@dataclass(slots=True, eq=False)
class InEngine(AtGates):
    fetching_since_ms: int = -1  # monotonic; -1: not being fetched, or already answered
    outcome: str = ""
    download_ms: int = 0
    fetched_bytes: int = 0
    marks: bytes = b""  # features' rows about its PLD, sent with its outcome
    payload: tuple[bytes, bytes] | None = None  # body and SHA-1 of its answer, while the engine has its request
    rows: tuple[ObservedRows, ...] = ()  # features' rows about its page, not sent yet
    next_try: bytes = b""
    next_order: int | None = None  # place in its host's queue; None: as before
    answered_ms: int = 0  # monotonic
    rest_ms: int = -1  # rest of its host after a successful fetch; -1: its end decides
    is_kept: bool = False  # whether the connection of its last answer is open
    ended_ms: int = 0  # monotonic

    def sha1_of(self, body: bytes) -> bytes | None:
        """Return the SHA-1 of this body if it is the answer's; None for another one, such as a decompressed body."""
        payload = self.payload
        return payload[1] if payload is not None and payload[0] is body else None

    def start(self, now_ms: int) -> None:
        self.stage = Stage.STARTED
        self.fetching_since_ms = now_ms

    def stop_fetching(self, now_ms: int) -> None:
        self.fetching_since_ms = -1
        self.answered_ms = now_ms

    def free_host(self, rest_ms: int) -> None:
        self.rest_ms = rest_ms

    def record_download(
        self, outcome: str, download_ms: int | None = None, body_bytes: int = 0, *, is_kept: bool = False
    ) -> None:
        """Record the result of a download, and whether its connection is open; bytes of several downloads add up."""
        self.outcome = outcome
        self.is_kept = is_kept
        if download_ms is not None:
            self.download_ms = download_ms
        self.fetched_bytes += body_bytes

    def record_marks(self, marks: bytes) -> None:
        self.marks = marks

    def record_payload(self, body: bytes, sha1: bytes) -> None:
        self.payload = body, sha1

    def record_rows(self, rows: tuple[ObservedRows, ...]) -> None:
        self.rows = rows

    def add_rows(self, beside: ObservedRows, more: tuple[ObservedRows, ...]) -> None:
        if any(rows is beside for rows in self.rows):
            self.rows += more

    def try_again(self, member: bytes, order: int | None) -> None:
        self.next_try = member
        if order is not None:
            self.next_order = order

    def finish(self, now_ms: int) -> None:
        self.ended_ms = now_ms
        self.payload = None
