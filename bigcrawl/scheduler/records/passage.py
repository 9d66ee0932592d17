"""When a fetch may start, by its gates (step 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Group = Callable[[str, str], str | None]


class Start(NamedTuple):
    """A moment at which a fetch may start.

    Attributes:
        at_ms: not before that, on the monotonic clock.
        until_ms: nor after that.
        granted_ms: the moment that was granted, in the time of the crawls; 0: no gate was asked.
        misses: how many starts of the same fetch were missed before; each doubles the slack, so that a node that is
            always late gets on.
    """

    at_ms: int
    until_ms: int
    granted_ms: int = 0
    misses: int = 0


MISSED: Final = -1
"""In place of how long a start must wait: it is too late for it."""

ANY_TIME: Final = Start(0, 1 << 62)
"""The start of a fetch that has no gate."""


class Passage(NamedTuple):
    """When a fetch may start: not before, nor after, any of its gates has it."""

    of_spaces: Start = ANY_TIME
    of_server: Start = ANY_TIME
    of_host: Start = ANY_TIME  # granted where other crawls may fetch it too

    @property
    def at_ms(self) -> int:
        """Not before that."""
        return max(self.of_spaces.at_ms, self.of_server.at_ms)

    @property
    def until_ms(self) -> int:
        """Nor after that."""
        return min(self.of_spaces.until_ms, self.of_server.until_ms, self.of_host.until_ms)

    @property
    def misses(self) -> int:
        """How many starts of the same fetch were missed before."""
        return max(self.of_spaces.misses, self.of_server.misses)


UNASKED: Final = Passage()
"""Of a fetch that has not asked any gate."""


Space = tuple[str, int]
"""Its name, and the gap between starts in it, ms."""
