"""A request and its answer, as a server saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROBOTS_TARGET: Final = "/robots.txt"
# The client left before it had the answer; nginx logs the same number.
ABORTED_STATUS: Final = 499
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503

# Values of `fault` for complete answers.
_WHOLE: Final = frozenset({"", "-", "long"})
# With these faults, the exchange ends when the client stops waiting.
_WAITED_OUT: Final = frozenset({"silent", "stalled", "endless"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, as a server saw them.

    Attributes:
        start_ms: arrival of the request, ms since the epoch; rounded down like `end_ms`, so that a gap of whole
            milliseconds is never logged shorter.
        end_ms: when the kernel took the last bytes of the answer, or last received from a client that left.
        host: without scheme and port.
        server: its address; empty if the host is its own server.
        fault: see the access log; empty or "-" for none.
        retry_after_ms: counted from `end_ms`; 0: no Retry-After.
    """

    start_ms: int
    end_ms: int
    host: str
    target: str
    status: int
    server: str = ""
    fault: str = ""
    retry_after_ms: int = 0

    @property
    def is_robots(self) -> bool:
        return self.target == ROBOTS_TARGET

    @property
    def is_faulty(self) -> bool:
        return self.fault not in _WHOLE

    @property
    def is_failure(self) -> bool:
        return self.status == _TOO_MANY_REQUESTS or self.status >= 500 or self.is_faulty

    @property
    def wait_ms(self) -> int:
        """The time after `end_ms` for which the host forbids requests."""
        refused = self.status in (_TOO_MANY_REQUESTS, _UNAVAILABLE)
        return self.retry_after_ms if refused and not self.is_faulty else 0

    def busy_until_ms(self, tolerance_ms: int) -> int:
        """Return the end of the exchange, minus the tolerance if the client left, which the server notices late."""
        left = self.status == ABORTED_STATUS or self.fault in _WAITED_OUT
        return self.end_ms - tolerance_ms if left else self.end_ms
