"""Faults of every kind at random, in crawls of three nodes whose answer is known: a thousand of them.

    BIGCRAWL_TEST_FAULTS=40 make test-fault TESTS=tests/fault/test_random_faults.py     # two minutes
    BIGCRAWL_TEST_FAULT_KINDS=kill,lost BIGCRAWL_TEST_SEED=7 ...                        # these kinds, these moments

What happens when follows from the seed, the machine's own timing apart. A crawl that fails prints its story.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bigcrawl.simweb.check.checker import Rules, check
from bigcrawl.warc.recovery import recover
from tests.support.crawls import Crawl, SimulatedWeb
from tests.support.everything import stored
from tests.support.faults.kinds import KINDS, strike
from tests.support.faults.world import DEADLINE_S, DELAY_MS, World
from tests.support.processes import no_strays_below
from tests.support.scrapyd_node import ScrapydCrawl
from tests.support.verdicts import was_untold

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.simweb.check.checker import Exchange, Report

pytestmark = [pytest.mark.fault, pytest.mark.timeout(4 * 3600)]

FAULTS = int(os.environ.get("BIGCRAWL_TEST_FAULTS", "1000"))
FAULTS_OF_OWN_DISKS = int(os.environ.get("BIGCRAWL_TEST_FAULTS", "200"))
FAULTS_OF_SCRAPYD = int(os.environ.get("BIGCRAWL_TEST_FAULTS", "120"))
SMALL, LARGE = (40, 40), (60, 840)  # hosts and pages of each
SECONDS_MAX = float(os.environ.get("BIGCRAWL_TEST_FAULT_SECONDS", "7200"))
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1"))
NAMES = sorted(os.environ.get("BIGCRAWL_TEST_FAULT_KINDS", ",".join(KINDS)).split(","))
GAP_S = 1.5  # between two faults, in the mean
STILL_S = 120.0  # far longer than any rest of a host, with all that is taken over after a lease


@pytest.mark.parametrize(
    ("own_disks", "faults", "size", "kind"),
    [
        pytest.param(False, FAULTS, SMALL, Crawl, id="one-disk"),
        # Nodes join, and machines are lost with their disks; the clock of one is half a minute wrong.
        pytest.param(True, FAULTS_OF_OWN_DISKS, SMALL, Crawl, id="own-disks-and-a-store"),
        # The same, one crawl of 50,000 pages: each node is a scrapyd in a directory of its own.
        pytest.param(True, FAULTS_OF_SCRAPYD, LARGE, ScrapydCrawl, id="scrapyds-and-50000-pages"),
    ],
)
def test_random_faults_lose_nothing_and_break_no_rule(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    own_disks: bool,
    faults: int,
    size: tuple[int, int],
    kind: type[Crawl],
) -> None:
    """Coverage 1, polite throughout, repeats within their bounds, each page stored; no node ends by itself."""
    met: Counter[str] = Counter()
    began_s, number = time.monotonic(), 0
    while met.total() < faults and time.monotonic() - began_s < SECONDS_MAX:
        seed = SEED + number
        directory = tmp_path / f"seed{seed}"
        with (
            no_strays_below(directory),
            SimulatedWeb(directory / "web", hosts=size[0], pages=size[1], seed=seed) as web,
            World(directory, web, seed, own_disks=own_disks, kind=kind) as world,
        ):
            here = suffer(world, random.Random(seed), faults - met.total())
            problems = world.problems + wrong(world)
        met += here
        with capsys.disabled():
            print(f"\nseed {seed}: {here.total()} faults, {met.total()} in all: {dict(here)}", end="")  # noqa: T201
        assert not problems, "\n".join([f"seed {seed}", *problems, *world.said])
        number += 1
    assert met.total() >= faults, f"only {met.total()} faults within {SECONDS_MAX:g} s"


def suffer(world: World, rng: random.Random, most: int) -> Counter[str]:
    """Let faults happen until the crawl is over, or there were enough of them, and let it end."""
    names = [name for name in NAMES if world.own_disks or not KINDS[name].own_disks]
    weights = [KINDS[name].weight for name in names]
    met: Counter[str] = Counter()
    while met.total() < most and not world.is_finished():
        world.live(rng.expovariate(1 / GAP_S))
        [name] = rng.choices(names, weights)
        if not world.is_finished() and strike(world, name, rng):
            met[name] += 1
    world.mend_all()
    world.wait_for_end(STILL_S)
    return met


def wrong(world: World) -> list[str]:
    """What the server's log, the nodes' logs and the WARC files say against the crawl."""
    report = held_to_the_rules(world)
    exchanges = world.web.exchanges()
    allowed = world.repeats.allowed(exchanges, world.web.saved.port)
    more: Counter[str] = Counter()
    for again in report.refetched:
        more[again.url] += again.times - 1
    for retried in report.over_retried:
        more[retried.url] += retried.retries - retried.allowed
    world.say(f"{more.total()} fetched again, {allowed.total()} might have been")
    over = more - allowed
    problems = [f"fetched again though it may not be: {url}: {fetches_of(url, exchanges)}" for url in over]
    if report.kinds - {"refetched", "over_retried"}:
        problems.append(str(replace(report, refetched=(), over_retried=())))
    return problems + tracebacks(world) + unstored(world)


def fetches_of(url: str, exchanges: list[Exchange]) -> str:
    """When a URL was fetched, for a reader of the story."""
    found = [each for each in exchanges if url.endswith(each.target) and f"//{each.host}:" in url]
    return ", ".join(f"{each.start_ms} to {each.end_ms} status {each.status}" for each in found)


def held_to_the_rules(world: World) -> Report:
    web = world.web
    rules = Rules(
        expected=web.expected(),
        port=web.saved.port,
        host_delay_ms=DELAY_MS,
        host_delays_ms=web.web.crawl_delays_ms(),
        retries=2,
        allows=web.web.allows,
    )
    report = check([given_up(each, world.asleep_ms) for each in web.exchanges()], rules)
    return replace(report, host_too_soon=tuple(gap for gap in report.host_too_soon if not was_untold(gap, DELAY_MS)))


def given_up(each: Exchange, asleep_ms: list[tuple[int, int]]) -> Exchange:
    """A node that is stopped cannot close its connections; others leave its hosts alone for the fetch deadline."""
    if not any(each.start_ms <= began_ms < each.end_ms for began_ms, _ in asleep_ms):
        return each
    return replace(each, end_ms=min(each.end_ms, each.start_ms + DEADLINE_S * 1000))


def tracebacks(world: World) -> list[str]:
    """Unhandled exceptions in any log of any node, the first of each."""
    found = []
    for node in world.nodes:
        for log in sorted(node.crawl.directory.glob("log*.txt")):
            before, mark, after = log.read_text(errors="replace").partition("Traceback")
            if mark:
                found.append(f"{log}: ...{before[-300:]}{mark}{after[:3000]}")
    return found


def unstored(world: World) -> list[str]:
    """Pages that count as fetched and are in no WARC file."""
    recover(world.directory / "warc")
    missing = world.web.expected().keys() - stored(world.directory / "warc").keys()
    return [f"not in any WARC file: {sorted(missing)[:10]}, {len(missing)} in all"] if missing else []
