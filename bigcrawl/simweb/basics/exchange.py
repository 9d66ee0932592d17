"""A request and its answer, as a server saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROBOTS_TARGET: Final = "/robots.txt"
# The client left before it had the answer; nginx logs the same number.
ABORTED_STATUS: Final = 499
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503

# Values of the access log's column `fault`. With these, a client gets everything that it was promised.
_WHOLE: Final = frozenset({"", "-", "long"})
# With these, the exchange ends when the client stops waiting.
_WAITED_OUT: Final = frozenset({"silent", "stalled", "endless"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, as a server saw them.

    Attributes:
        start_ms: when the request had arrived, ms since the epoch. Rounded down, like `end_ms`, so that a kept gap of
            whole milliseconds is never logged shorter.
        end_ms: when the last bytes of the answer were handed to the kernel. If the client left: when the kernel last
            heard from it, or when the server noticed, which is later than the client's own end.
        host: the unit of the host delay, without scheme and port.
        server: the unit of the server gap, an address; empty if the host is its own server.
        fault: the fault while the answer was sent, a value of the access log; empty or "-" for none.
        retry_after_ms: the delay that Retry-After asked for, counted from `end_ms`; 0 if it had none.
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
        """Whether the request was for robots.txt."""
        return self.target == ROBOTS_TARGET

    @property
    def is_faulty(self) -> bool:
        """Whether a fault of the server kept the client from receiving the whole answer."""
        return self.fault not in _WHOLE

    @property
    def is_failure(self) -> bool:
        """Whether a retry may help: 429, 5xx, or an answer that could not be received."""
        return self.status == _TOO_MANY_REQUESTS or self.status >= 500 or self.is_faulty

    @property
    def wait_ms(self) -> int:
        """How long after `end_ms` the host wants no requests; 0 if it said nothing, or its answer was not received."""
        refused = self.status in (_TOO_MANY_REQUESTS, _UNAVAILABLE)
        return self.retry_after_ms if refused and not self.is_faulty else 0

    def busy_until_ms(self, tolerance_ms: int) -> int:
        """Return the end of the exchange for a client that may not have two at once.

        A client that leaves and returns at once may be back before the server has noticed that it left.
        """
        left = self.status == ABORTED_STATUS or self.fault in _WAITED_OUT
        return self.end_ms - tolerance_ms if left else self.end_ms
