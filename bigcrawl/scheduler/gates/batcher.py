"""Questions of many tasks, asked together.

A round trip or a thread's turn costs the same for one question as for thirty. Who asks while an answer is under way
waits for it, and goes with all others that came meanwhile; who asks when none is under way waits for nobody.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

Question = TypeVar("Question")
Answer = TypeVar("Answer")

TOGETHER_MAX: Final = 512


class Gathered(Generic[Question, Answer]):
    """One asker for many tasks."""

    def __init__(self, ask_all: Callable[[list[Question]], Awaitable[Sequence[Answer | Exception]]]) -> None:
        """Take what answers questions, in their order; an answer that is an exception is raised where it was asked."""
        self._ask_all = ask_all
        self._waiting: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._asker: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Gathered waiting={len(self._waiting)}>"

    async def ask(self, question: Question) -> Answer:
        """Return the answer; what the asking raises, it raises in all that were asked together."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((question, answer))
        if self._asker is None or self._asker.done():
            self._asker = loop.create_task(self._run(), name="bigcrawl-gathered")
        return await answer

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)  # whoever else asks in this turn of the loop
            asked = [each for each in self._waiting[:TOGETHER_MAX] if not each[1].done()]
            del self._waiting[:TOGETHER_MAX]
            try:
                told = await self._ask_all([question for question, _ in asked]) if asked else []
            except Exception as error:  # noqa: BLE001 - it is who asked who can tell what it means
                told = [error] * len(asked)
            except BaseException:
                for _, answer in asked + self._waiting:
                    answer.cancel()
                raise
            for (_, answer), found in zip(asked, told, strict=True):
                if answer.done():
                    continue  # who asked was cancelled
                if isinstance(found, Exception):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)
