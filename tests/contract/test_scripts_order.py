"""First come, first served: in which order hosts that are due at once are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.redis_servers.script_world import DELAY_MS, ScriptWorld

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import ExchangeReply
    from tests.support.redis_servers.script_world import ScriptRunner


def test_hosts_that_are_due_at_once_are_taken_in_the_order_they_came(world: ScriptWorld) -> None:
    """Not by their names: of a batch, of what ended together, and of what a dead node held."""
    hosts = [f"{name}.example" for name in "qhzbmaxc"]
    world.admit(*hosts, *hosts, *hosts)
    assert _hosts(world.take(5)) == hosts[:5]
    assert _hosts(world.take(5)) == hosts[5:]
    world.acknowledge(4, 2, 3, 1, 8, 7, 6, 5)
    world.advance(DELAY_MS)
    again = [hosts[seq - 1] for seq in (4, 2, 3, 1, 8, 7, 6, 5)]
    assert _hosts(world.take()) == again
    world.claim("b", dead_token="token-a")  # noqa: S106 - it proves a death
    world.advance(DELAY_MS)
    assert _hosts(world.take()) == [host for host in hosts if host in again]
    world.check()


def test_hosts_that_a_doubt_puts_off_keep_their_order(world: ScriptWorld) -> None:
    """All wait for the delay from now, and then as they would have."""
    world.admit("z.example", "a.example")
    world.advance(1)
    world.admit("b.example")
    world.reconcile(delay_ms=DELAY_MS)
    assert world.take().urls == []
    world.advance(DELAY_MS + 1)
    assert _hosts(world.take()) == ["z.example", "a.example", "b.example"]


def test_connections_of_hosts_come_in_the_order_of_the_hosts(runner: ScriptRunner, crawl_name: str) -> None:
    """A host with two connections is due again after its delay, behind those taken before it."""
    world = ScriptWorld(runner, crawl_name, connections=2)
    world.claim()
    world.admit("z.example", "a.example", "z.example", "a.example")
    assert _hosts(world.take()) == ["z.example", "a.example"]
    world.advance(DELAY_MS)
    assert _hosts(world.take()) == ["z.example", "a.example"]


def test_new_host_passes_those_that_have_been_due_for_less_than_its_head_start(world: ScriptWorld) -> None:
    world.admit("long.example")
    world.advance(3_000)
    world.admit("short.example")
    world.advance(3_000)
    world.head_start_ms = 5_000
    world.admit("new.example")
    assert _hosts(world.take()) == ["long.example", "new.example", "short.example"]
    world.check()


def test_host_that_was_fetched_has_no_head_start(world: ScriptWorld) -> None:
    """Whether its robots.txt is known is not asked: its record says when it was fetched."""
    world.admit("old.example")
    world.take()
    world.acknowledge(1)
    world.advance(DELAY_MS + 1)
    world.admit("other.example")
    world.advance(1)
    world.head_start_ms = 60_000
    world.admit("old.example")
    assert _hosts(world.take()) == ["other.example", "old.example"]


def test_head_start_shortens_no_rest(world: ScriptWorld) -> None:
    world.head_start_ms = 60_000
    world.admit("a.example")
    world.take()
    world.acknowledge(1)
    world.admit("a.example")
    assert world.take().urls == []
    world.advance(DELAY_MS)
    assert _hosts(world.take()) == ["a.example"]


def _hosts(taken: ExchangeReply) -> list[str]:
    return [url.host for url in taken.urls]
