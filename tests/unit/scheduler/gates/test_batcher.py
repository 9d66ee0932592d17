"""Questions of many tasks, asked together."""

from __future__ import annotations

import asyncio

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.gates.batcher import TOGETHER_MAX, QuestionBatcher
from tests.support.running.turns import loop_turns


class Oracle:
    """Doubles numbers, when it is let; 0 is an error of its own, and after `fail` all fail."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def answer(self, numbers: list[int]) -> list[int | Exception]:
        self.asked.append(numbers)
        await self.may_answer.wait()
        if self.error:
            raise self.error
        return [2 * number if number else ValueError("zero") for number in numbers]


def test_who_asks_at_the_same_time_goes_together() -> None:
    """Those of one turn of the loop, and those that come while an answer is under way, up to a bound; in order."""

    async def scenario() -> None:
        oracle = Oracle()
        asker = QuestionBatcher(oracle.answer)
        first = [asyncio.create_task(asker.ask(number)) for number in (1, 2, 3)]
        await loop_turns()
        later = [asyncio.create_task(asker.ask(number)) for number in range(10, 10 + TOGETHER_MAX + 1)]
        await loop_turns()
        assert oracle.asked == [[1, 2, 3]]
        oracle.may_answer.set()
        assert await asyncio.gather(*first) == [2, 4, 6]
        assert await asyncio.gather(*later) == [2 * number for number in range(10, 10 + TOGETHER_MAX + 1)]
        assert [len(each) for each in oracle.asked] == [3, TOGETHER_MAX, 1]
        assert await asker.ask(7) == 14

    asyncio.run(scenario())


def test_error_of_one_is_raised_to_who_asked_it_and_error_of_all_to_all() -> None:
    """And the next questions are asked as ever."""

    async def scenario() -> None:
        oracle = Oracle()
        oracle.may_answer.set()
        asker = QuestionBatcher(oracle.answer)
        good, bad = await asyncio.gather(asker.ask(4), asker.ask(0), return_exceptions=True)
        assert good == 8
        assert isinstance(bad, ValueError)
        oracle.error = TransientStoreError("away")
        both = await asyncio.gather(asker.ask(1), asker.ask(2), return_exceptions=True)
        assert list(both) == [oracle.error, oracle.error]
        oracle.error = None
        assert await asker.ask(5) == 10

    asyncio.run(scenario())


def test_who_gives_up_is_not_waited_for() -> None:
    """A cancelled question is not asked, or its answer goes nowhere; the others' come."""

    async def scenario() -> None:
        oracle = Oracle()
        asker = QuestionBatcher(oracle.answer)
        under_way, other = asyncio.create_task(asker.ask(1)), asyncio.create_task(asker.ask(2))
        await loop_turns()
        waiting, last = asyncio.create_task(asker.ask(3)), asyncio.create_task(asker.ask(4))
        await loop_turns()
        under_way.cancel()
        waiting.cancel()
        oracle.may_answer.set()
        assert list(await asyncio.gather(other, last)) == [4, 8]
        assert oracle.asked == [[1, 2], [4]]

    asyncio.run(scenario())


def test_nobody_waits_for_ever_when_the_asker_is_cancelled() -> None:
    """As when the loop ends."""

    async def scenario() -> None:
        asker = QuestionBatcher(Oracle().answer)
        asks = [asyncio.create_task(asker.ask(number)) for number in (1, 2)]
        await loop_turns()
        asks.append(asyncio.create_task(asker.ask(3)))
        await loop_turns()
        [runner] = [task for task in asyncio.all_tasks() if task.get_name() == "bigcrawl-batcher"]
        runner.cancel()
        for ask in asks:
            with pytest.raises(asyncio.CancelledError):
                await ask

    asyncio.run(scenario())
