"""Pauses Scrapy's engine for reasons that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class EnginePause:
    """Pauses the engine while there is a reason.

    A pause by the operator stays in force if it began before. If the operator ends a pause, the next reason begins one.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._reasons: set[str] = set()
        self._is_ours = False

    def __repr__(self) -> str:
        return f"<EnginePause {sorted(self._reasons)}>"

    def begin(self, reason: str) -> None:
        """Pause for a reason."""
        if not self._crawler.engine.paused:
            self._crawler.engine.pause()
            self._is_ours = True
        self._reasons.add(reason)

    def end(self, reason: str) -> None:
        """Go on, unless there are other reasons."""
        self._reasons.discard(reason)
        if self._is_ours and not self._reasons:
            self._crawler.engine.unpause()
            self._is_ours = False
