"""Pauses Scrapy's engine for reasons that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_OURS: Final = int(True)  # as good as True to whoever looks, and another object


class EnginePause:
    """Pauses the engine while there is a reason.

    A pause by the operator stays in force, whether it began before ours or during it. If the operator ends a pause, the
    next reason begins one.

    The engine has one flag, `paused`. It is `_OURS` while the pause is ours alone, and True once somebody else has
    paused the engine.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._reasons: set[str] = set()

    def __repr__(self) -> str:
        return f"<EnginePause {sorted(self._reasons)}>"

    def begin(self, reason: str) -> None:
        """Pause for a reason."""
        engine: Any = self._crawler.engine
        if not engine.paused:
            engine.pause()
            engine.paused = _OURS
        self._reasons.add(reason)

    def end(self, reason: str) -> None:
        """Let the engine go on, unless there are other reasons."""
        self._reasons.discard(reason)
        engine: Any = self._crawler.engine
        if engine.paused is _OURS and not self._reasons:
            engine.unpause()
