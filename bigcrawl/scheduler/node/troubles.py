from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.redisdb.client import RedisClient

logger = logging.getLogger(__name__)


class Troubles:
    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._failing: set[str] = set()
        self.is_restarted = False
        self.text = ""

    def __repr__(self) -> str:
        return f"<Troubles of {sorted(self._failing)} restarted={self.is_restarted}>"

    def record_restart(self) -> None:
        self.is_restarted = True

    def record_recovery(self) -> None:
        self.is_restarted = False

    def record_failure(self, loop: str, error: BigcrawlError) -> None:
        """Record a failed round of a loop. Only the first is logged, until all loops succeed again."""
        if not self._failing:
            logger.warning("waiting: %(error)s", {"error": error})
            self.text = str(error)
        self._failing.add(loop)

    def record_success(self, loop: str) -> None:
        """Record a successful round, which counts only while this node and Redis agree."""
        if loop in self._failing and not (self.is_restarted or self._client.in_doubt):
            self._failing.discard(loop)
            if not self._failing:
                self.text = ""
                logger.info("the crawl continues")

    @property
    def are_any(self) -> bool:
        return bool(self._failing)

    def is_failing(self, loop: str) -> bool:
        return loop in self._failing
