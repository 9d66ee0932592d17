"""One crawl, told in the same words each time, in which exactly one round trip goes wrong: each one, in each way.

A run without faults counts the round trips; every other run repeats it with one fault at one of them. What comes late
arrives at one of two moments: a little later, and after the URLs it speaks of have moved on.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.property.frontier_trial import MANY_HOSTS, LeapingLoop, Sites, Trial
from tests.support.redis_servers.unreliable_redis import Fault, Plan

TURNS = 14
NEXT_NODE_AT = 4
LATE_TURNS = (2, 6)


@dataclass(frozen=True, slots=True)
class Single:
    """One fault at one round trip, and how many turns a late request is under way."""

    at: int
    plan: Plan
    late_turns: int = 0

    def __str__(self) -> str:
        late = f", {self.late_turns} turns" if self.late_turns else ""
        return f"round trip {self.at}: {self.plan.fault.value} {self.plan.pattern:b}{late}"


def singles(round_trips: int) -> list[Single]:
    """Every fault at every one of so many round trips."""
    plans = [Plan(fault) for fault in (Fault.UNHEARD, Fault.UNSENT, Fault.CUT_SHORT)]
    plans += [Plan(Fault.REFUSED, 0b1), Plan(Fault.REFUSED, 0b10), Plan(Fault.REFUSED, 0b101)]
    return [
        *(Single(at, plan) for at in range(round_trips) for plan in plans),
        *(Single(at, Plan(Fault.LATE), turns) for at in range(round_trips) for turns in LATE_TURNS),
    ]


def count_round_trips(redis_url: str, crawl: str, sites: Sites = MANY_HOSTS) -> int:
    """How many there are before everything is left to settle."""
    return _run(redis_url, crawl, sites, None)


def run_with(redis_url: str, crawl: str, single: Single, sites: Sites = MANY_HOSTS) -> None:
    """Run the crawl with that fault; AssertionError where a promise is broken."""
    try:
        _run(redis_url, crawl, sites, single)
    except AssertionError as error:
        error.add_note(str(single))
        raise


def _run(redis_url: str, crawl: str, sites: Sites, single: Single | None) -> int:
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-single-"))
    try:
        with asyncio.Runner(loop_factory=LeapingLoop) as runner:
            return runner.run(_trial(directory, crawl, redis_url, sites, single))
    finally:
        shutil.rmtree(directory)


async def _trial(directory: Path, crawl: str, redis_url: str, sites: Sites, single: Single | None) -> int:
    trial = Trial(directory, crawl, redis_url, sites, may_forget=False)
    try:
        await trial.begin()
        before = trial.network.round_trips
        if single is not None:
            trial.network.plans.extend([*[None] * single.at, single.plan])
        deliver_at = None
        for turn in range(TURNS):
            if turn == NEXT_NODE_AT:
                await trial.start_node()
            for number, node in enumerate(list(trial.nodes)):
                await trial.end_one(node, again=(turn + number) % 3 == 0)
                await trial.end_one(node)
            await trial.turn_all()
            if single is not None and single.late_turns and deliver_at is None and not trial.network.plans:
                deliver_at = turn + single.late_turns
            if turn == deliver_at:
                trial.network.deliver()
        round_trips = trial.network.round_trips - before
        await trial.settle()
        return round_trips
    finally:
        await trial.close()
