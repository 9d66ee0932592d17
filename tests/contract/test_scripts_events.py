"""Events of a crawl: each stands there once, whatever is repeated, and they do not pile up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptRunner

LEASE_MS = 60_000
NOW_MS = 1_000_000
NOTHING = (0, 0, 0)


class Events:
    """A crawl's events, as they are written."""

    def __init__(self, runner: ScriptRunner, crawl: str) -> None:
        self.runner = runner
        self.keys = CrawlKeys(crawl)

    def beat(self, node: str, now_ms: int = NOW_MS, made: tuple[int, ...] = NOTHING, **options: Any) -> None:
        self.runner.run(scripts.beat_node(self.keys, node, "{}", LEASE_MS, made, now_ms=now_ms, **options))

    def all(self) -> list[str]:
        """The lines of each, in the order of their times, with blanks between them."""
        return [member.decode().replace("\n", " ").rstrip() for member in self._members()]

    def _members(self) -> list[bytes]:
        found: list[bytes] = self.runner.client.zrange(self.keys.events, 0, -1)
        return found


@pytest.fixture
def events(runner: ScriptRunner, crawl_name: str) -> Events:
    return Events(runner, crawl_name)


def test_node_comes_and_leaves_once(events: Events) -> None:
    """However often it says so."""
    for _ in range(2):
        events.beat("a", is_first=True)
    for _ in range(2):
        events.beat("a", NOW_MS + 5, leave=True)
    assert events.all() == ["1000000 node_came a", "1000005 node_left a"]


def test_node_that_never_beat_cannot_leave(events: Events) -> None:
    """A node looks at the others in this way before it joins."""
    events.beat("a", made=(), leave=True)
    assert events.all() == []


def test_silent_node_dies_once_and_may_be_heard_again(events: Events) -> None:
    """A proof of its death behind that is no second event; its mark does not stay."""
    events.beat("a")
    for later_ms in (LEASE_MS + 1, LEASE_MS + 2):
        events.beat("b", NOW_MS + later_ms)
    events.beat("a", NOW_MS + LEASE_MS + 3)
    events.beat("b", NOW_MS + 2 * LEASE_MS + 4)
    events.beat("a", NOW_MS + 2 * LEASE_MS + 5, made=(), leave=True)
    assert events.all() == [
        "1000000 node_came a",
        "1060001 node_came b",
        "1060001 node_died a has stopped responding",
        "1060003 node_came a is heard again",
        "1120004 node_died a has stopped responding",
    ]
    assert not [name for name in events.runner.client.hkeys(events.keys.counts) if name.startswith(b"silent:")]


def test_death_that_another_node_proves_is_an_event(events: Events) -> None:
    """At once, before the lease is over."""
    events.beat("a")
    for _ in range(2):
        events.beat("a", NOW_MS + 9, made=(), leave=True)
    assert events.all() == ["1000000 node_came a", "1000009 node_died a"]


def test_event_that_is_written_again_is_the_same(events: Events) -> None:
    """With its own time, however late."""
    later = scripts.record_event(events.keys, NOW_MS + 7, "speed", text="5/s")
    for call in (later, scripts.record_event(events.keys, NOW_MS, "rule", "a", "x"), later):
        events.runner.run(call)
    assert events.all() == ["1000000 rule a x", "1000007 speed  5/s"]


def test_last_events_are_kept(events: Events) -> None:
    """Five hundred of them."""
    for number in range(520):
        events.runner.run(scripts.record_event(events.keys, NOW_MS + number, "rule"))
    assert len(events.all()) == 500
    assert events.all()[-1] == f"{NOW_MS + 519} rule"


def test_end_is_announced_once(events: Events) -> None:
    """And again when other counters say that there was more to do."""
    for counters in (b"1 2", b"1 2", b"1 3"):
        events.runner.run(scripts.announce_end(events.keys, counters, NOW_MS + len(events.all())))
    assert events.all() == ["1000000 finished", "1000001 finished"]
    assert events.runner.client.hget(events.keys.crawl, "finished") == b"1 3"


def test_work_of_nodes_that_are_gone_does_not_pile_up(events: Events) -> None:
    """Live nodes keep theirs."""
    events.beat("lives")
    for node in ("lives", *(f"gone{number}" for number in range(9)), "last"):
        events.runner.run(scripts.put_recent(events.keys, node, "{}", 3))
    names = {name.decode() for name in events.runner.client.hkeys(events.keys.recent)}
    assert {"lives", "last"} <= names
    assert len(names) <= 4
