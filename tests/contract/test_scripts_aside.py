"""Taken URLs that go back into the inbox: in one place at any moment, and their host none the worse for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import Identity
from tests.support.redis_servers.script_world import DELAY_MS, ScriptRunner, ScriptWorld

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import Call


def call(world: ScriptWorld, *seqs: int, who: Identity | None = None) -> Call[list[str]]:
    urls = [(seq, b"batch %d" % seq) for seq in seqs]
    return scripts.set_aside_urls(world.keys, who or world.who, world.connections, urls, world.now_ms)


def moved(world: ScriptWorld, *seqs: int) -> int:
    """Set URLs aside; how many were still taken."""
    return len([entry_id for entry_id in world.runner.run(call(world, *seqs)) if entry_id])


def inbox(world: ScriptWorld) -> list[bytes]:
    return [fields[b"b"] for _, fields in world.client.xrange(world.keys.inbox)]


def test_a_taken_url_is_in_the_inbox_and_nowhere_else(world: ScriptWorld) -> None:
    """It is taken no more, counted as appended, and its host may be asked for the next one at once."""
    world.admit("a.example", "a.example", "b.example")
    first, other = world.take_seqs()
    assert moved(world, first) == 1
    seen = world.check()
    assert (inbox(world), list(seen.taken)) == ([b"batch %d" % first], [other])
    assert [world.count(name) for name in ("appended_urls", "set_aside", "ended")] == [1, 1, 0]
    assert world.host_state("a.example") == "ready 0"


def test_repeated_it_changes_nothing(world: ScriptWorld) -> None:
    """After a lost reply the URL is passed over: it is in the inbox once."""
    world.admit("a.example")
    [seq] = world.take_seqs()
    assert [moved(world, seq) for _ in range(3)] == [1, 0, 0]
    assert len(inbox(world)) == 1
    assert world.host_state("a.example") == ""


def test_a_host_that_rests_goes_on_resting(world: ScriptWorld) -> None:
    """What was said of its next fetch holds, though nothing was fetched."""
    world.admit("a.example", "a.example", "a.example")
    [first] = world.take_seqs()
    world.acknowledge(first)
    [second] = world.take_seqs(horizon_ms=DELAY_MS)
    assert moved(world, second) == 1
    assert world.host_state("a.example") == f"ready {DELAY_MS}"


def test_another_owner_is_not_disturbed(world: ScriptWorld) -> None:
    """Who is not the owner moves nothing."""
    world.admit("a.example")
    [seq] = world.take_seqs()
    with pytest.raises(OwnershipLostError):
        world.runner.run(call(world, seq, who=Identity("b", world.who.epoch)))
    assert inbox(world) == []
    assert list(world.check().taken) == [seq]


def test_several_connections_of_a_host(runner: ScriptRunner, crawl_name: str) -> None:
    """One of two that are taken goes aside: the host has one connection in use, and room for another."""
    world = ScriptWorld(runner, crawl_name, connections=2)
    world.claim()
    world.admit("a.example", "a.example", "a.example")
    [first] = world.take_seqs()
    world.advance(DELAY_MS)
    [second] = world.take_seqs()
    assert moved(world, first, second) == 2
    world.check()
    assert world.host_state("a.example").startswith("ready")
