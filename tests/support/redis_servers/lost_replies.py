"""A client whose Redis carries calls out, or not, and whose replies do not come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Call


class LostReplies:
    """Loses the reply to each batch of calls that `loses` picks; `late` has the batches that Redis has not seen yet.

    Args:
        client: whose calls.
        loses: of the calls of a round trip, in order.
        is_late: whether Redis does not see such calls until `deliver`.
    """

    def __init__(self, client: RedisClient, loses: Callable[[list[Call[Any]]], bool], *, is_late: bool = False) -> None:
        self._run_some = client._run_some
        self._loses = loses
        self._is_late = is_late
        self.lost = 0
        self.late: list[tuple[list[Call[Any]], int]] = []
        client._run_some = self._run  # type: ignore[method-assign,assignment]

    async def _run(self, calls: list[Call[Any]], now_ms: int) -> list[Any]:
        if not self._loses(calls):
            return await self._run_some(calls, now_ms)
        self.lost += 1
        if self._is_late:
            self.late.append((calls, now_ms))
        else:
            await self._run_some(calls, now_ms)
        raise TransientStoreError("the reply is lost")

    async def deliver(self) -> list[Any]:
        """What was late reaches Redis now, as it was sent; the replies that nobody waits for."""
        late, self.late = self.late, []
        return [result for calls, now_ms in late for result in await self._run_some(calls, now_ms)]


def once(name: str) -> Callable[[list[Call[Any]]], bool]:
    """Pick the first round trip that calls this script."""
    left = [name]

    def loses(calls: list[Call[Any]]) -> bool:
        return bool(left) and any(call.name == name for call in calls) and bool(left.pop())

    return loses
