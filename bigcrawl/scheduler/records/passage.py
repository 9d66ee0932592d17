from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Group = Callable[[str, str], str | None]


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


class Passage(NamedTuple):
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


UNASKED: Final = Passage()


Space = tuple[str, int]
"""The name of a space, and its minimum gap between starts in ms."""
