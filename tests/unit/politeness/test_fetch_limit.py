"""The limit on fetches at a time, in simulated crawls: what is a crowd, and what only looks like one."""

from __future__ import annotations

import pytest

from bigcrawl.politeness.fetch_limit import FIRST, FetchLimit
from tests.support.worlds.crowd_world import CrowdWorld

SEEDS = range(1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_crawl_without_a_crowd_soon_has_all_its_fetches_and_keeps_them(seed: int) -> None:
    """Eight at first, 64 within ten seconds, and from then on as many pages as with a fixed limit."""
    limit = FetchLimit(4, 64)
    assert limit.limit == FIRST
    world, fixed = CrowdWorld(limit, seed=seed), CrowdWorld(64, seed=seed)
    world.run(10)
    fixed.run(10)
    assert limit.limit == 64
    assert world.run(30).pages > 0.97 * fixed.run(30).pages
    assert not limit.is_crowded


@pytest.mark.parametrize("seed", SEEDS)
def test_crowd_is_thinned_out_and_brings_as_many_pages(seed: int) -> None:
    """A link that gets four times narrower: a third of the fetches does as much, in half the time or less."""
    limit = FetchLimit(4, 64)
    world, fixed = CrowdWorld(limit, 150, seed=seed), CrowdWorld(64, 150, seed=seed)
    for each in (world, fixed):
        each.run(15)
        each.link = 30
        each.run(15)
    crowded, thinned = fixed.run(30), world.run(30)
    assert limit.limit < 64 / 2
    assert limit.is_crowded
    assert thinned.pages > 0.95 * crowded.pages
    assert thinned.mean_ms < 0.6 * crowded.mean_ms


@pytest.mark.parametrize("seed", SEEDS)
def test_limit_is_back_soon_after_a_crowd(seed: int) -> None:
    """Ten seconds after the link is wide again all fetches are there."""
    limit = FetchLimit(4, 64)
    world = CrowdWorld(limit, 150, seed=seed)
    world.run(15)
    world.link = 30
    world.run(30)
    assert limit.limit < 64 / 2
    world.link = 150
    world.run(10)
    assert limit.limit == 64


@pytest.mark.parametrize("seed", SEEDS)
def test_timeouts_of_a_crowd_are_avoided(seed: int) -> None:
    """Where 256 at a time end in timeouts, most of them, the limit has hardly any, and more pages."""
    limit = FetchLimit(4, 256)
    world = CrowdWorld(limit, 60, timeout_ms=3_000, seed=seed)
    fixed = CrowdWorld(256, 60, timeout_ms=3_000, seed=seed)
    ours, theirs = world.run(40), fixed.run(40)
    assert theirs.timeouts > 1_000
    assert ours.timeouts < theirs.timeouts / 20
    assert ours.pages > 1.15 * theirs.pages


@pytest.mark.parametrize("seed", SEEDS)
def test_hosts_that_get_slow_are_no_crowd(seed: int) -> None:
    """All hosts are others and take ten times as long: cuts are tried in vain, and taken back."""
    limit = FetchLimit(4, 64)
    world = CrowdWorld(limit, seed=seed)
    world.run(10)
    world.host_ms = lambda dice: round(3_000 * dice.lognormvariate(0, 0.6))
    world.run(40)
    assert limit.limit == 64


def test_hosts_of_all_speeds_are_no_crowd() -> None:
    """Answers between a tenth of a second and ten: as many pages as with a fixed limit, all in all."""
    ours = theirs = 0
    for seed in SEEDS:
        for world in (CrowdWorld(FetchLimit(4, 64), seed=seed), CrowdWorld(64, seed=seed)):
            world.host_ms = lambda dice: round(1_000 * dice.lognormvariate(0, 1.2))
            world.run(20)
            pages = world.run(120).pages
            if isinstance(world._limit, int):
                theirs += pages
            else:
                ours += pages
    assert ours > 0.95 * theirs


def test_dead_hosts_take_nothing_from_the_limit() -> None:
    """In a crowd with many that hang, those that answer have the link to themselves all the same."""
    limit = FetchLimit(4, 256)
    world = CrowdWorld(limit, 30, seed=1)
    world.dead = 0.1
    world.run(60)
    assert limit.limit < 128
    assert world.run(60).pages > 0.9 * 60 * 30


@pytest.mark.parametrize("at_once", [64, 512])
def test_busy_cpu_loses_no_pages(at_once: int) -> None:
    """700 pages/s is what the core does; of hosts that answer at once, that is all the time there is."""
    limit = FetchLimit(4, at_once)
    world, fixed = CrowdWorld(limit, 700), CrowdWorld(at_once, 700)
    for each in (world, fixed):
        each.host_ms = lambda _: 2
        each.run(10)
    assert world.run(10).pages > 0.98 * fixed.run(10).pages
    assert limit.limit >= 64


@pytest.mark.long("half an hour of a played crawl; shorter ones are played here")
def test_free_time_found_in_a_crowd_is_found_again() -> None:
    """A crawl that begins in a crowd holds its times for free ones; half an hour later it knows better."""
    limit = FetchLimit(4, 64)
    world = CrowdWorld(limit, 15)
    early = (world.run(30), world.run(120))[1].mean_ms
    late = (world.run(1_200), world.run(120))[1].mean_ms
    assert late < early


def test_few_hosts_have_no_typical_time() -> None:
    """Ten hosts that take ever longer are ten hosts: the limit is what it is at most."""
    limit = FetchLimit(4, 64)
    for now_ms in range(0, 120_000, 200):
        limit.adjust(now_ms, limit.limit)
        for host in range(10):
            limit.record_answer(str(host), 100 + now_ms // 10, now_ms)
    assert limit.limit == 64


def test_silence_is_no_sign() -> None:
    """Without any answer the limit neither rises nor falls: a link that is down is not asked for more."""
    limit = FetchLimit(4, 64)
    for now_ms in range(0, 120_000, 200):
        assert not limit.adjust(now_ms, limit.limit)
    assert limit.limit == FIRST


@pytest.mark.parametrize(("least", "most", "first"), [(4, 64, 8), (16, 64, 16), (4, 6, 6), (64, 64, 64), (100, 10, 10)])
def test_limit_begins_between_its_bounds(least: int, most: int, first: int) -> None:
    """Eight, unless the least is more or the most is less."""
    assert FetchLimit(least, most).limit == first
