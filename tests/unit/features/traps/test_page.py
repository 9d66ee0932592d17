"""What a node's answers and look-ups show of traps, and with which outcome it goes to the PLD's partition."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bigcrawl.features.traps.page import WINDOW, TrapSigns, observer_of
from bigcrawl.features.traps.verdicts import pack_same_content, pack_wildcard
from bigcrawl.scheduler.handout.observers import Observers
from bigcrawl.scheduler.records.held_urls import HeldUrls
from tests.support.keys import pld_key
from tests.support.observing import Sent, node_side
from tests.unit.scheduler.records.test_held_urls import held_url


def signs(settings: dict[str, object] | None = None, **asked: Any) -> TrapSigns:
    found = observer_of(node_side(Sent(), settings, **asked))
    assert found is not None
    return found


@pytest.mark.parametrize("settings", [{"BIGCRAWL_TRAPS": False}, {"BIGCRAWL_BUDGET_POLICY": "none"}])
def test_nothing_is_observed_where_nobody_needs_it(settings: dict[str, object]) -> None:
    """Traps are off, or there are no budgets to lower."""
    assert observer_of(node_side(Sent(), settings)) is None


@pytest.mark.parametrize("is_known", [False, True])
def test_a_page_that_is_fetched_again_is_no_copy_of_itself(*, is_known: bool) -> None:
    """A site would look like a trap if its pages had the content of others because they had it before."""
    observer, held = signs(was_fetched=lambda _: is_known), held_url(1)
    marks = [observer.record_answer(held, b"page") for _ in range(WINDOW)]
    assert marks[:-1] == [b""] * (WINDOW - 1)
    assert marks[-1] == (b"" if is_known else pack_same_content(pld_key("a.example"), WINDOW - 1))


def test_a_wildcard_goes_with_the_next_answer_of_its_pld_and_of_no_other() -> None:
    """Once, and beside what its pages show."""

    async def scenario() -> None:
        async def look_up(_: str) -> list[str]:
            return ["192.0.2.1"]

        observer = signs({"BIGCRAWL_TRAP_WILDCARD_HOSTS": 2}, look_up=look_up)
        observers = Observers(HeldUrls(), Sent(), [observer])
        farm, other = held_url(1, host="h1.farm.example"), held_url(2, host="www.a.example")
        for _ in range(WINDOW - 1):
            observers.record_answer(farm, b"page")
        for _ in range(2):
            observers.record_look_up("farm.example")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        observers.record_answer(other, b"page")
        assert other.marks == farm.marks == b""
        observers.record_answer(farm, b"page")
        key = pld_key("farm.example")
        assert farm.marks == pack_same_content(key, WINDOW - 1) + pack_wildcard(key, found=True)
        observers.record_answer(farm, b"page")
        assert farm.marks == b""
        await observers.close()

    asyncio.run(scenario())


def test_a_question_under_way_is_given_up_at_the_end() -> None:
    """A name server that is silent does not keep a node from closing."""

    async def scenario() -> None:
        async def look_up(_: str) -> list[str]:
            await asyncio.Event().wait()
            raise AssertionError("nothing sets it")

        observers = Observers(HeldUrls(), Sent(), [signs({"BIGCRAWL_TRAP_WILDCARD_HOSTS": 2}, look_up=look_up)])
        for _ in range(2):
            observers.record_look_up("farm.example")
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 2
        await asyncio.wait_for(observers.close(), 60)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
