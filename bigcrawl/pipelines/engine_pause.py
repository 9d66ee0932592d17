from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_OURS: Final = int(True)  # equals True, but is another object


class EnginePause:
    """Pauses the engine while there is a reason. Its flag `paused` is `_OURS`, unless an operator has paused it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._reasons: set[str] = set()

    def pause_for(self, reason: str) -> None:
        engine: Any = self._crawler.engine
        if not engine.paused:
            engine.pause()
            engine.paused = _OURS
        self._reasons.add(reason)

    def resume_for(self, reason: str) -> None:
        self._reasons.discard(reason)
        engine: Any = self._crawler.engine
        if engine.paused is _OURS and not self._reasons:
            engine.unpause()
