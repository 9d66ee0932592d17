"""Starts in spaces that hosts share: a gap apart over whoever asks, in all of a URL's spaces at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from tests.support.script_world import ScriptRunner

T0_MS = 1_700_000_000_000
PLD, GROUP = ("pld example.com", 1_000), ("group wiki", 300)


class Gate:
    def __init__(self, runner: ScriptRunner, crawl: str) -> None:
        self._runner = runner
        self.keys = CrawlKeys(crawl)

    def ask(self, at_ms: int, *spaces: tuple[str, int], ahead_ms: int = 0, given_up: int | None = None) -> int:
        """The granted start, ms after T0."""
        before = 0 if given_up is None else T0_MS + given_up
        call = scripts.pass_spaces(self.keys, spaces, ahead_ms, before, now_ms=T0_MS + at_ms)
        now_ms, start_ms = self._runner.run(call)
        assert now_ms == T0_MS + at_ms
        return int(start_ms) - T0_MS


@pytest.fixture
def gate(runner: ScriptRunner, crawl_name: str) -> Gate:
    return Gate(runner, crawl_name)


def test_starts_in_a_space_are_its_gap_apart(gate: Gate) -> None:
    """In the order of asking; other spaces are not concerned."""
    assert [gate.ask(0, PLD) for _ in range(3)] == [0, 1_000, 2_000]
    assert gate.ask(0, ("pld example.org", 1_000)) == 0
    assert gate.ask(2_500, PLD) == 3_000
    assert gate.ask(9_000, PLD) == 9_000


def test_a_start_keeps_all_spaces_of_its_url(gate: Gate) -> None:
    """The latest of them counts, and moves all of them on."""
    gate.ask(0, PLD)
    gate.ask(0, GROUP)
    assert gate.ask(0, PLD, GROUP) == 1_000
    assert gate.ask(0, GROUP) == 1_300
    assert gate.ask(0, PLD) == 2_000


def test_a_start_is_not_sooner_than_wanted(gate: Gate) -> None:
    """Who cannot start yet gets a later time, and the space is not free before that."""
    assert gate.ask(0, PLD, ahead_ms=400) == 400
    assert gate.ask(0, PLD) == 1_400


def test_a_start_that_is_given_up_is_free_again(gate: Gate) -> None:
    """Moved from 0 to 400: the next one is a gap behind 400, not behind 1,400; so a late one does not lose its turn."""
    assert gate.ask(0, PLD) == 0
    assert gate.ask(0, PLD, ahead_ms=400, given_up=0) == 400
    assert gate.ask(0, PLD) == 1_400


def test_a_start_is_not_given_up_behind_a_later_one(gate: Gate) -> None:
    """When somebody was granted the next one, the gap to that is kept: the mover goes behind it."""
    assert gate.ask(0, PLD) == 0
    assert gate.ask(0, PLD) == 1_000
    assert gate.ask(0, PLD, ahead_ms=400, given_up=0) == 2_000


def test_spaces_are_forgotten_when_they_are_free(gate: Gate, runner: ScriptRunner) -> None:
    """Nothing is kept of a space longer than its gap and a second."""
    gate.ask(0, PLD)
    left_ms = runner.client.pttl(gate.keys.space + PLD[0])
    assert 0 < left_ms <= 2_000
