"""The answer of a gate to a URL that cannot pass now."""

from __future__ import annotations

WAIT_MS_MAX = 1_000


class Closed(Exception):  # noqa: N818 - an answer, not an error
    """The URL cannot pass: never (`reason`, `error`), for `retry_ms`, or while the blacklist covers it (`is_aside`).

    With both a reason and `is_aside`, a seed waits for other settings, and any other URL ends. `failure` is what
    failed at its host, for instance DNS. `error` is not the host's fault; the URL fails with it.
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
