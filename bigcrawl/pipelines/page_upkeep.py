"""Shows other machines which WARC file is being written, and looks for files whose writers have died meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import CallLaterResult, call_later

from bigcrawl.warc.writers import BEAT_S, QUIET_S

if TYPE_CHECKING:
    from collections.abc import Callable


class PageUpkeep:
    """Calls two functions over and over, until it is ended.

    Args:
        beat: called every `BEAT_S`; touches the file that is written.
        look: called every `QUIET_S`, after which a file that was doubtful at the last look is quiet or written.
    """

    def __init__(self, beat: Callable[[], Any], look: Callable[[], Any]) -> None:
        self._every = {beat: BEAT_S, look: QUIET_S}
        self._timers: dict[Callable[[], Any], CallLaterResult] = {}

    def __repr__(self) -> str:
        return f"<PageUpkeep timers={len(self._timers)}>"

    def begin(self) -> None:
        """Call each for the first time after its interval."""
        for function in self._every:
            self._wait(function)

    def end(self) -> None:
        """Call them no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _wait(self, function: Callable[[], Any]) -> None:
        self._timers[function] = call_later(self._every[function], self._call, function)

    def _call(self, function: Callable[[], Any]) -> None:
        self._wait(function)
        function()
