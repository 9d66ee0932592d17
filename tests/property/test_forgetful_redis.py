"""Redis forgets any suffix of its last two seconds and stays away for any time: the node that lives tells it all again.

Pages are visited several times, share their contents, vote for each other, and their bytes are counted. A node that
lives has all of it in its memory, so not even a fetch is repeated: what must have come to the partitions is known
exactly, but for votes and bytes, which may be counted twice.
"""

from __future__ import annotations

import hashlib
import itertools
import shutil
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from bigcrawl.content.exact_copies import content_key
from bigcrawl.features.revisits.page import NextVisits
from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.revisiting.visit import Answer, digest_of
from tests.property.frontier_trial import (
    MANY_HOSTS,
    PAGES,
    SITES,
    SITES_IDS,
    TURN_MS,
    LeapingLoop,
    Sites,
    Trial,
)
from tests.support.keys import url_key
from tests.support.redis_servers.unreliable_redis import Fault, Plan
from tests.support.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from bigcrawl.scheduler.node.node import Node

MACHINE = settings(max_examples=examples(3), stateful_step_count=8, deadline=None, derandomize=True)
VISITS = 3
SETTINGS = {
    "revisit": "periodic",
    "revisit_seconds": 8,
    "revisit_seconds_min": 1,
    "revisit_visits_max": VISITS,
    "link_votes": True,
    "budget_rules": {"*": {"bytes": 1 << 40}},
}
AWAY_MS = (0, 1_000, 2_500, 3_500, 6_000, 12_000, 45_000, 120_000)
REMEMBERED_TURNS = 2_000 // TURN_MS  # of which Redis may forget any suffix
_numbers = itertools.count(1)


def body_of(url: str) -> bytes:
    """Two pages each have the same content."""
    return b"content %d" % (int(url.rpartition("/")[2]) // 2) * 200


class ForgetfulTrial(Trial):
    """A crawl by one node that visits pages again and tells partitions all that it may tell."""

    def __init__(self, tmp_path: Path, crawl: str, redis_url: str, sites: Sites) -> None:
        super().__init__(tmp_path, crawl, redis_url, sites, may_forget=False, settings=SETTINGS)
        self.visits: Counter[str] = Counter()
        self.contents: set[int] = set()

    def _record_start(self, node: Node, held: Any) -> None:
        for fetch in self.fetches:
            fetch.may_repeat = True  # visits are counted as they end
        super()._record_start(node, held)

    async def end_one(self, node: Node, *, again: bool = False) -> None:
        if self.may_end(node) and not again:
            held, parts = self.under_way[node][0].held, node.parts
            body = body_of(held.url)
            held.record_download("status:200", 10, len(body))
            visits = parts.observers.observer_of(NextVisits)
            assert visits is not None
            visits.record_visit(held, Answer(200, digest_of(body)))
            parts.observers.record_page(held, body, is_text=False)
            self.contents.add(content_key(hashlib.sha1(body, usedforsecurity=False).digest()))
            [noted] = parts.observers.links_of(held)
            noted.add(self.sites.links_of(held.url), 1)
            noted.end()
            self.visits[held.url] += 1
        await super().end_one(node, again=again)

    async def work(self, turns: int, ends: int) -> None:
        """So many turns, in each of which so many pages come."""
        for _ in range(turns):
            for node in self.nodes:
                for _ in range(ends):
                    await self.end_one(node)
            await self.turn_all()

    async def die(self, ends: int, back: int, away_turns: list[int]) -> None:
        """Redis forgets its last `back` round trips, which are of two seconds at most, and stays away."""
        self.network.kept = [self.network.snapshot()]
        await self.work(REMEMBERED_TURNS, ends)
        kept, self.network.kept = self.network.kept, None
        await self.come_back(kept[max(0, len(kept) - 1 - back)], away_turns, ends)

    async def come_back(self, snapshot: dict[bytes, tuple[int, bytes]], away_ms: list[int], ends: int) -> None:
        """Redis stays away for these times, between which the node looks for it, and then has the snapshot."""
        self.restart(self.now_ms, snapshot)
        self.network.is_away = True
        for ms in away_ms:
            await self.pass_time(ms)
            await self.work(1, ends)
        self.network.is_away = False

    async def settle(self) -> None:
        await super().settle()
        url_of, links_of = self.sites.url_of, self.sites.links_of
        keys = np.array([url_key(url_of(page)) for page in range(PAGES)], dtype=np.uint64)
        assert self.visits == Counter({url_of(page): VISITS for page in range(PAGES)})
        [node] = self.nodes
        found = [owned.disk for owned in node.ownership.owned.values()]
        assert sum(int(disk.ends_of(keys)[0].sum()) for disk in found) == PAGES, "an outcome is lost"
        assert sum(int(disk.state.tables["visits"].values(keys)[1]["number"].sum()) for disk in found) == (
            PAGES * VISITS
        ), "a visit is lost"
        tables = [disk.state.tables for disk in found]
        links = {url_key(to) for page in range(PAGES) for to in links_of(url_of(page))}
        voted = np.array(sorted(links), dtype=np.uint64)
        assert sum(int(each["votes"].values(voted)[0].sum()) for each in tables) == len(voted), "a vote is lost"
        contents = np.array(sorted(self.contents), dtype=np.uint64)
        assert len(contents) == PAGES // 2
        assert sum(int(each["contents"].values(contents)[0].sum()) for each in tables) == PAGES // 2, (
            "a content is lost"
        )
        assert sum(disk.manifest.counts.get("exact_copies", 0) for disk in found) == PAGES // 2, "a copy is lost"
        for host in {url.split("/")[2] for url in self.visits}:
            limit = node.parts.ownership.crawl_budgets.limit_of("bytes", host, f"http://{host}/")
            account = np.array([limit.account if limit else 0], dtype=np.uint64)
            of_host = [url for url in self.visits if url.split("/")[2] == host]
            counted = [each["totals"].values(account)[1]["bytes"][0] for each in tables]
            fetched = VISITS * sum(-(-len(body_of(url)) // 1024) * 1024 for url in of_host)
            assert sum(counted) >= fetched, "bytes are lost"


class ForgetfulMachine(RuleBasedStateMachine):
    """Drives such a trial."""

    def __init__(self, redis_url: str, sites: Sites = MANY_HOSTS) -> None:
        super().__init__()
        self.loop = LeapingLoop()
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-trial-"))
        self.trial = self.do(_made(self.directory, f"forgetful{next(_numbers)}", redis_url, sites))

    def do(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(turns=st.integers(2, 20))
    def begin(self, turns: int) -> None:
        self.do(self.trial.begin())
        self.do(self.trial.work(turns, 4))

    @rule(turns=st.integers(1, 12), ends=st.integers(0, 4))
    def pages_come(self, turns: int, ends: int) -> None:
        self.do(self.trial.work(turns, ends))

    @rule(
        ends=st.integers(0, 4),
        back=st.integers(0, 40),
        away_ms=st.lists(st.sampled_from(AWAY_MS), min_size=1, max_size=4),
        fault=st.none() | st.tuples(st.integers(0, 20), st.sampled_from(Fault)),
    )
    def redis_dies(self, ends: int, back: int, away_ms: list[int], fault: tuple[int, Fault] | None) -> None:
        """What the node tells it first may be interrupted."""
        self.do(self.trial.die(ends, back, away_ms))
        if fault is not None:
            self.trial.network.plans.extend([*[None] * fault[0], Plan(fault[1])])

    def teardown(self) -> None:
        try:
            self.do(self.trial.settle())
        except AssertionError as error:
            error.add_note("\n".join(self.trial.network.struck))
            raise
        finally:
            self.do(self.trial.close())
            self.loop.close()
            shutil.rmtree(self.directory)


async def _made(directory: Path, crawl: str, redis_url: str, sites: Sites) -> ForgetfulTrial:
    return ForgetfulTrial(directory, crawl, redis_url, sites)


@pytest.mark.parametrize("sites", SITES, ids=SITES_IDS)
def test_nothing_is_lost_and_nothing_fetched_again_when_redis_forgets_and_stays_away(
    redis_url: str, sites: Sites
) -> None:
    """At any moment, for any time, also while it is told what it forgot before."""
    run_state_machine_as_test(partial(ForgetfulMachine, redis_url, sites), settings=MACHINE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "round_trips",
    [pytest.param(n, marks=pytest.mark.long("another moment")) if n % 6 else n for n in range(13)],
)
def test_recovery_that_is_interrupted_finds_all_again(redis_url: str, round_trips: int) -> None:
    """Redis dies once more after so many round trips, forgets what it was told in them, and stays away again."""
    machine = ForgetfulMachine(redis_url)
    machine.begin(12)  # pages have just begun to be visited again
    trial, network = machine.trial, machine.trial.network
    network.kept = [network.snapshot()]
    machine.do(trial.work(2, 4))
    forgotten, network.kept = network.kept[0], None
    away_ms = [2 * FORGETTABLE_MS] * 2
    machine.do(trial.come_back(forgotten, away_ms, 4))
    network.plans.extend([*[None] * round_trips, Plan(Fault.UNHEARD)])
    machine.do(trial.work(2, 4))
    network.plans.clear()
    machine.do(trial.come_back(forgotten, away_ms, 4))
    machine.teardown()
