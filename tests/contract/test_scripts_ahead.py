"""URLs that `exchange_urls` gives ahead of their hosts' turns: as many as asked for, none while it must rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import EndedUrl, ExchangeReply, GrantedClaim, effect_of_failure
from tests.support.redis_servers.script_world import DEADLINE_MS, DELAY_MS, seq_of

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptWorld

HOST = "a.example"
HORIZON_MS = 500  # as a node has it


def ahead(world: ScriptWorld, urls: int, *ended: EndedUrl, take: int = 0, host: str = HOST) -> ExchangeReply:
    return world.exchange(take, HORIZON_MS, *ended, ahead=[(host, urls)])


def seqs(exchanged: ExchangeReply) -> list[int]:
    return [seq_of(url.member) for url in exchanged.urls]


def test_a_host_gives_as_many_as_asked_for(world: ScriptWorld) -> None:
    """In the order of its queue, though all its connections are in use; it is not ready meanwhile."""
    world.admit(*[HOST] * 5)
    assert world.take_seqs() == [1]
    given = ahead(world, 3)
    assert seqs(given) == [2, 3, 4]
    assert given.ahead == 3
    assert world.host_state(HOST) == "busy 4"
    assert world.check().hot == 1


def test_a_host_that_is_ready_gives_ahead_as_well(world: ScriptWorld) -> None:
    """Those ahead come first, and the host then gives none in its turn; another one does."""
    world.admit(*[HOST] * 3, "b.example")
    given = ahead(world, 2, take=9)
    assert seqs(given) == [1, 2, 4]
    assert given.ahead == 2
    assert world.host_state(HOST) == "busy 2"


def test_a_host_is_ready_again_when_few_are_taken(world: ScriptWorld) -> None:
    """Ended or given back, after its delay from the last end."""
    world.admit(*[HOST] * 5)
    ahead(world, 4)
    world.acknowledge(1)
    world.give_back(2, 3, delay_ms=0)
    assert world.host_state(HOST) == "busy 1"
    world.acknowledge(4)
    assert world.host_state(HOST) == f"ready {DELAY_MS}"
    world.advance(DELAY_MS)
    assert world.take_seqs() == [2]


def test_nothing_is_given_beyond_the_horizon(world: ScriptWorld) -> None:
    """A host that backs off, is retired, or rests after a fetch of which the node knows nothing."""
    world.admit(*[HOST] * 3)
    world.take()
    world.end(EndedUrl(1, DELAY_MS, b"", effect=effect_of_failure("error:timeout", (60_000, 60_000, 0, 0))))
    assert not ahead(world, 9).urls
    world.advance(60_000 - HORIZON_MS)
    assert [url.due_ms - world.now_ms for url in ahead(world, 9).urls] == [HORIZON_MS] * 2


def test_a_host_that_is_borrowed_gives_none(world: ScriptWorld) -> None:
    """Nor one that somebody waits for: it pauses until all that is taken has ended."""
    world.admit(*[HOST] * 4)
    ahead(world, 1)
    borrow = scripts.borrow_host(world.keys, HOST, "ticket", 5_000, DEADLINE_MS, world.now_ms)
    assert world.runner.run(borrow)[0] == 0
    assert not ahead(world, 9).urls
    world.acknowledge(1, delay_ms=0)
    world.advance(1_000)
    borrow = scripts.borrow_host(world.keys, HOST, "ticket", 5_000, DEADLINE_MS, world.now_ms)
    assert world.runner.run(borrow)[0] == 1
    world.advance(2_000)
    assert not ahead(world, 9).urls


def test_all_go_back_when_their_node_dies(world: ScriptWorld) -> None:
    """At their places; the host rests as after any fetch."""
    world.admit(*[HOST] * 4)
    ahead(world, 3)
    world.advance(10)
    assert isinstance(world.claim("n2", dead_token=f"token-{world.who.node}"), GrantedClaim)
    assert not world.check().taken
    assert not ahead(world, 9).urls, "nobody knows which of them was fetched last"
    world.advance(DELAY_MS)
    assert seqs(ahead(world, 9)) == [1, 2, 3, 4]


def test_a_lost_reply_leaves_them_to_the_comparison(world: ScriptWorld) -> None:
    """Those that the node does not hold go back. Their host need not rest, because nobody has fetched them."""
    world.admit(*[HOST] * 3)
    [first] = world.take().urls
    ahead(world, 2)
    world.reconcile([(1, (HOST, 1, first.member))])
    assert list(world.check().taken) == [1]
    assert seqs(ahead(world, 2)) == [2, 3]


def test_a_host_without_urls_gives_none(world: ScriptWorld) -> None:
    """Whatever the node believes."""
    assert not ahead(world, 9).urls
    assert world.host_state(HOST) == ""
