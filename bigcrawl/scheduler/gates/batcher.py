"""Answers the questions of many tasks in batches, because thirty questions together cost as much as one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

Question = TypeVar("Question")
Answer = TypeVar("Answer")

TOGETHER_MAX: Final = 512


class QuestionBatcher(Generic[Question, Answer]):
    def __init__(self, ask_all: Callable[[list[Question]], Awaitable[Sequence[Answer | Exception]]]) -> None:
        """`ask_all` answers questions in order. If an answer is an exception, the call of `ask` raises it."""
        self._ask_all = ask_all
        self._waiting: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._asker: asyncio.Task[None] | None = None

    async def ask(self, question: Question) -> Answer:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((question, answer))
        if self._asker is None or self._asker.done():
            self._asker = loop.create_task(self._answer_batches(), name="bigcrawl-batcher")
        return await answer

    async def _answer_batches(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)
            asked = [each for each in self._waiting[:TOGETHER_MAX] if not each[1].done()]
            del self._waiting[:TOGETHER_MAX]
            try:
                answers = await self._ask_all([question for question, _ in asked]) if asked else []
            except Exception as error:  # noqa: BLE001 - the caller knows what it means
                answers = [error] * len(asked)
            except BaseException:
                for _, answer in asked + self._waiting:
                    answer.cancel()
                raise
            for (_, answer), found in zip(asked, answers, strict=True):
                if answer.done():
                    continue
                if isinstance(found, Exception):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)
