"""The answer of a gate that a URL may not pass now (step 10)."""

from __future__ import annotations

WAIT_MS_MAX = 1_000  # who must wait for longer, for a start, a turn or a name, does not hold a place in the node


class Closed(Exception):  # noqa: N818 - an answer, not an error
    """It may not pass: for good (`reason`), for `retry_ms`, or for as long as the blacklist says (`is_aside`).

    With both a reason and `is_aside`, a seed waits for other settings, told what is `about` its address, and any other
    URL ends. `failure` is what of the host has failed, if any.
    """

    def __init__(
        self, reason: str = "", retry_ms: int = 0, failure: str = "", *, is_aside: bool = False, about: str = ""
    ) -> None:
        super().__init__(reason or ("blacklisted" if is_aside else f"for {retry_ms} ms"))
        self.reason = reason
        self.retry_ms = retry_ms
        self.failure = failure
        self.is_aside = is_aside
        self.about = about
