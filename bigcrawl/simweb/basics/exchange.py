"""One request and its answer, as a server saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROBOTS_TARGET: Final = "/robots.txt"
# The client went away before it had the answer; nginx logs the same number.
ABORTED_STATUS: Final = 499
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503

# Words of the access log's column `fault`. After these a client has all that it was told of.
_WHOLE: Final = frozenset({"", "-", "long"})
# These end when the client has had enough of waiting.
_WAITED_OUT: Final = frozenset({"silent", "stalled", "endless"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as a server saw them.

    Attributes:
        start_ms: when the request had arrived, ms since the epoch. Rounded down, like `end_ms`: a gap of whole
            milliseconds that was kept is then never logged shorter.
        end_ms: when the last bytes of the answer were handed to the kernel; where the client left, when the
            kernel heard it last, or when the server noticed, which is later than the client's own end.
        host: what the host delay is kept for, without scheme and port.
        server: what the server gap is kept for, an address; empty: the host is its own server.
        fault: what befell the answer on its way, a word of the access log; empty or "-": nothing.
        retry_after_ms: what its Retry-After asked for, counted from `end_ms`; 0: it had none.
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
        """Whether robots.txt was asked for."""
        return self.target == ROBOTS_TARGET

    @property
    def is_faulty(self) -> bool:
        """Whether the server's fault kept the client from receiving the answer whole."""
        return self.fault not in _WHOLE

    @property
    def is_failure(self) -> bool:
        """Whether asking again may help: 429, 5xx, or an answer that could not be received."""
        return self.status == _TOO_MANY_REQUESTS or self.status >= 500 or self.is_faulty

    @property
    def wait_ms(self) -> int:
        """How long after `end_ms` its host wants to be left alone; 0: it did not say so, or was not heard."""
        refused = self.status in (_TOO_MANY_REQUESTS, _UNAVAILABLE)
        return self.retry_after_ms if refused and not self.is_faulty else 0

    def busy_until_ms(self, tolerance_ms: int) -> int:
        """The end of the exchange for a client that may not have two at once.

        Who leaves and comes back at once may be back before the server has noticed the leave.
        """
        left = self.status == ABORTED_STATUS or self.fault in _WAITED_OUT
        return self.end_ms - tolerance_ms if left else self.end_ms
