"""When a fetch may start, by its gates (step 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Group = Callable[[str, str], str | None]


class Start(NamedTuple):
    """The time span in which a fetch may start.

    Attributes:
        at_ms: earliest start, on the monotonic clock.
        until_ms: latest start.
        granted_ms: the granted moment on the crawls' clock; 0 if no gate was asked.
        misses: how many earlier starts of this fetch were missed. Each doubles the slack, so that a node that is
            always late still makes progress.
    """

    at_ms: int
    until_ms: int
    granted_ms: int = 0
    misses: int = 0


MISSED: Final = -1
"""Returned instead of a waiting time: the start was missed."""

ANY_TIME: Final = Start(0, 1 << 62)
"""The start of a fetch that has no gate."""


class Passage(NamedTuple):
    """When a fetch may start: within the spans of all its gates."""

    of_spaces: Start = ANY_TIME
    of_server: Start = ANY_TIME
    of_host: Start = ANY_TIME  # granted if other crawls may fetch the host too

    @property
    def at_ms(self) -> int:
        """Earliest start."""
        return max(self.of_spaces.at_ms, self.of_server.at_ms)

    @property
    def until_ms(self) -> int:
        """Latest start."""
        return min(self.of_spaces.until_ms, self.of_server.until_ms, self.of_host.until_ms)

    @property
    def misses(self) -> int:
        """How many earlier starts of this fetch were missed."""
        return max(self.of_spaces.misses, self.of_server.misses)


UNASKED: Final = Passage()
"""The passage of a fetch that has not asked any gate."""


Space = tuple[str, int]
"""Its name, and the gap between starts in it, in ms."""
