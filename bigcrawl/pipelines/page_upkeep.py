from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import CallLaterResult, call_later

from bigcrawl.warc.files import BEAT_S, QUIET_S

if TYPE_CHECKING:
    from collections.abc import Callable


class PeriodicPageWork:
    """Calls two functions periodically: `beat` touches the file in use, `look` finds those of dead writers."""

    def __init__(self, beat: Callable[[], Any], look: Callable[[], Any]) -> None:
        self._every = {beat: BEAT_S, look: QUIET_S}
        self._timers: dict[Callable[[], Any], CallLaterResult] = {}

    def begin(self) -> None:
        for function in self._every:
            self._schedule_call(function)

    def end(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _schedule_call(self, function: Callable[[], Any]) -> None:
        self._timers[function] = call_later(self._every[function], self._call_and_reschedule, function)

    def _call_and_reschedule(self, function: Callable[[], Any]) -> None:
        self._schedule_call(function)
        function()
