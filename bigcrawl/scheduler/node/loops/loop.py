from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, ClassVar

from bigcrawl.exceptions import (
    BigcrawlError,
    CorruptionError,
    OwnershipLostError,
    RewoundError,
    TransientStoreError,
)
from bigcrawl.redisdb.reply_errors import RedisRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bigcrawl.scheduler.node.troubles import Troubles

logger = logging.getLogger(__name__)

RETRY_S = 0.5
AFTER_RESTART_S = 0.05
HASTY_ROUNDS = 25
TOGETHER_S = 1.0  # rests of this length end together, because an idle process pays for each time it wakes
SHORTEST_S = 0.01  # the event loop may be a little early for a whole second


class Loop:
    """One of a node's loops, named as in the docstring of `node.node`."""

    name: ClassVar[str]

    async def turn(self) -> float:
        raise NotImplementedError

    async def rest(self, rest_s: float) -> None:
        """Rest for `rest_s`, or less if other loops wait for this one."""
        await asyncio.sleep(together(asyncio.get_running_loop().time(), rest_s))

    async def after_failure(self) -> None:
        """Try to remove the cause of a failed round: an unreachable Redis, or a lost partition."""


class Haste:
    """Whether an idle node's loop should run often: for its first idle rounds, in which a small crawl can end."""

    def __init__(self) -> None:
        self._rounds = 0

    def record_round(self, *, is_idle: bool) -> bool:
        self._rounds = self._rounds + 1 if is_idle else 0
        return 0 < self._rounds <= HASTY_ROUNDS


class LoopRunner:
    """Runs loops until they are stopped, or one meets an error that waiting does not solve.

    `set_apart_by` sets apart the partition of a damaged file, or returns False.
    """

    def __init__(
        self,
        loops: Sequence[Loop],
        troubles: Troubles,
        set_apart_by: Callable[[CorruptionError], bool],
        on_fatal: Callable[[BigcrawlError], None],
    ) -> None:
        self.loops = tuple(loops)
        self._troubles = troubles
        self._set_apart_by = set_apart_by
        self._on_fatal = on_fatal
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<LoopRunner of {', '.join(loop.name for loop in self.loops)}; {self._troubles!r}>"

    def start(self) -> None:
        create_task = asyncio.get_running_loop().create_task
        self._tasks = [create_task(self.run(loop), name=f"bigcrawl-{loop.name}") for loop in self.loops]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def run(self, loop: Loop) -> None:
        while (rest_s := await self._turn(loop)) is not None:
            await loop.rest(rest_s)

    async def _turn(self, loop: Loop) -> float | None:
        """Do one round. Return the seconds to rest, or None if the node cannot continue."""
        try:
            rest_s = await loop.turn()
        except RewoundError:
            self._troubles.record_restart()
            return AFTER_RESTART_S
        except RedisRefusedError as error:
            self._troubles.record_failure(loop.name, error)
            return RETRY_S
        except (TransientStoreError, OwnershipLostError) as error:
            self._troubles.record_failure(loop.name, error)
            await loop.after_failure()
            return RETRY_S
        except BigcrawlError as error:
            if isinstance(error, CorruptionError) and self._set_apart_by(error):
                return RETRY_S
            self._on_fatal(error)
            return None
        except Exception as error:
            logger.exception("one of bigcrawl's loops failed")
            self._on_fatal(BigcrawlError(f"the loop `{loop.name}` failed: {error!r}"))
            return None
        self._troubles.record_success(loop.name)
        return rest_s


def together(now_s: float, rest_s: float) -> float:
    """Return `rest_s`; if it is long, shortened to end at a whole second."""
    left_s = math.floor(now_s + rest_s) - now_s
    return left_s if rest_s >= TOGETHER_S and left_s > SHORTEST_S else rest_s


async def rest_until(event: asyncio.Event, least_s: float, most_s: float) -> None:
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    alarm = loop.call_at(begun_s + max(least_s, together(begun_s, most_s)), event.set)
    try:
        await event.wait()
    finally:
        alarm.cancel()
    if (left_s := begun_s + least_s - loop.time()) > 0:
        await asyncio.sleep(left_s)
    event.clear()


async def refusal_of(work: Awaitable[object]) -> RedisRefusedError | None:
    try:
        await work
    except RedisRefusedError as error:
        return error
    return None
