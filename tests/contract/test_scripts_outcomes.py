"""Outcomes of acknowledged URLs go into the inbox, by the call that acknowledges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import EndedUrl, Identity
from bigcrawl.scheduler.records.outcomes import pack_outcomes
from tests.support.redis_servers.script_world import DELAY_MS

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptWorld

SAID = pack_outcomes([(1, "status:200", 0), (2, "dropped:forbidden", 7)])


def end(world: ScriptWorld, outcomes: bytes, *ended: EndedUrl, revisits: bytes = b"") -> int:
    call = scripts.exchange_urls(
        world.keys, world.who, 1, 0, 0, DELAY_MS, ended, now_ms=world.now_ms, outcomes=outcomes, timed=revisits
    )
    count: int = world.runner.run(call).ended
    return count


def inbox(world: ScriptWorld) -> list[dict[bytes, bytes]]:
    return [fields for _, fields in world.client.xrange(world.keys.inbox)]


def test_outcomes_are_one_inbox_entry_of_the_call(world: ScriptWorld) -> None:
    """All of a call stand in one entry, byte for byte, behind what was there; counters of URLs stay as they are."""
    world.admit("a.example", "b.example")
    world.take()
    world.runner.run(scripts.append_batch(world.keys, "n", 1, 1, b"batch", 3))
    ends = [EndedUrl(1, 0, b"", "status:200", 5), EndedUrl(2, 0, b"", "dropped:forbidden")]
    assert end(world, SAID, *ends) == 2
    assert inbox(world) == [{b"b": b"batch"}, {b"o": SAID}]
    assert (world.count("appended_urls"), world.count("ended")) == (3, 2)
    assert (world.count("status:200"), world.count("dropped:forbidden")) == (1, 1)
    world.check()


def test_call_without_outcomes_leaves_the_inbox_alone(world: ScriptWorld) -> None:
    """Taking, returning and failing URLs tell of no end."""
    world.admit("a.example", "b.example")
    world.take()
    assert end(world, b"", EndedUrl(1, 0, b"="), EndedUrl(2, 0, b"2:next", "retried:status:503")) == 2
    assert not world.client.exists(world.keys.inbox)


def test_repeat_after_a_lost_reply_says_the_same_once_more(world: ScriptWorld) -> None:
    """The URL ended once; its outcome stands twice, and the later one says the same."""
    world.admit("a.example")
    world.take()
    assert [end(world, SAID, EndedUrl(1, 0, b"", "status:200")) for _ in range(2)] == [1, 0]
    assert world.count("status:200") == 1
    assert inbox(world) == [{b"o": SAID}] * 2


def test_who_is_not_the_owner_tells_nothing(world: ScriptWorld) -> None:
    """Another node's word about an end is refused as its acknowledgement is."""
    world.admit("a.example")
    world.take()
    world.who = Identity("stranger", 1)
    with pytest.raises(OwnershipLostError):
        end(world, SAID, EndedUrl(1, 0, b"", "status:200"))
    assert not world.client.exists(world.keys.inbox)


def test_revisits_are_in_the_entry_of_their_outcomes(world: ScriptWorld) -> None:
    """Either both are in the inbox or neither; they are no URLs that wait for the seen check."""
    world.admit("a.example")
    world.take()
    assert [end(world, SAID, EndedUrl(1, 0, b"", "status:200"), revisits=b"next") for _ in range(2)] == [1, 0]
    assert inbox(world) == [{b"o": SAID, b"v": b"next"}] * 2
    assert world.count("appended_urls") == 0
    world.check()
