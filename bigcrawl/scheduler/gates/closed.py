"""What a gate answers to a URL that may not pass now (step 10)."""

from __future__ import annotations

WAIT_MS_MAX = 1_000  # a URL that must wait longer, for a start, a turn or a name, goes back to its queue


class Closed(Exception):  # noqa: N818 - an answer, not an error
    """The URL may not pass: never (`reason`, `error`), for `retry_ms`, or while the blacklist covers it (`is_aside`).

    With both a reason and `is_aside`, a seed waits for other settings, and any other URL ends.

    Attributes:
        failure: which part of its host has failed; empty if none.
        about: what is wrong with its address, for the log.
        error: why it could not be asked for, if that says nothing of its host; it fails with this very exception.
    """

    def __init__(
        self,
        reason: str = "",
        retry_ms: int = 0,
        failure: str = "",
        *,
        is_aside: bool = False,
        about: str = "",
        error: Exception | None = None,
    ) -> None:
        super().__init__(reason or ("blacklisted" if is_aside else f"for {retry_ms} ms"))
        self.reason = reason
        self.retry_ms = retry_ms
        self.failure = failure
        self.is_aside = is_aside
        self.about = about
        self.error = error
