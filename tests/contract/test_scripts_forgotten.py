"""A partition changes hands after Redis has forgotten its last seconds: no host is asked again before it has rested.

The last owner may have fetched from any host in the forgotten time, and only that owner could tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import GrantedClaim
from tests.support.redis_servers.script_world import ABORT_MS, DEADLINE_MS, DELAY_MS, LEASE_MS

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptWorld

HOST, OTHER = "a.example", "b.example"
CRAWL_DELAY_MS = DELAY_MS + 7_000


def put_rules(world: ScriptWorld, host: str, delay_ms: int) -> None:
    args = (world.keys, host, f"robots:http://{host}", b"rules", 86_400_000, 9, world.now_ms)
    world.runner.run(scripts.put_robots(*args, delay_ms=delay_ms))


def test_hosts_rest_when_the_owner_is_dead_and_redis_was_restarted(world: ScriptWorld) -> None:
    """Each waits the usual delay from the claim on."""
    world.admit(HOST, OTHER)
    world.claim("b", "token-a", server="another")
    assert world.take_seqs() == []
    world.advance(DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1, 2]
    world.check()


def test_hosts_do_not_rest_when_redis_was_not_restarted(world: ScriptWorld) -> None:
    """It knows what the dead owner has fetched."""
    world.admit(HOST, OTHER)
    world.claim("b", "token-a")
    assert world.take_seqs() == [1, 2]


def test_hosts_rest_for_a_lease_too_when_the_owner_may_live(world: ScriptWorld) -> None:
    """It may be fetching still, under a lease whose renewal is forgotten."""
    world.admit(HOST)
    world.advance(LEASE_MS)
    world.claim("b", server="another")
    world.advance(LEASE_MS + ABORT_MS + DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1]


def test_a_host_rests_for_its_own_delay_if_that_is_longer(world: ScriptWorld) -> None:
    put_rules(world, HOST, CRAWL_DELAY_MS)
    world.admit(HOST, OTHER)
    world.claim("b", "token-a", server="another")
    world.advance(DELAY_MS + 1)
    assert world.take_seqs() == [2]
    world.advance(CRAWL_DELAY_MS - DELAY_MS - 2)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1]


def test_hosts_that_are_admitted_after_the_claim_rest_too(world: ScriptWorld) -> None:
    """Redis may have forgotten that they were admitted at all."""
    put_rules(world, OTHER, CRAWL_DELAY_MS)
    world.claim("b", "token-a", server="another")
    world.admit(HOST, OTHER)
    world.advance(DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1]
    world.advance(CRAWL_DELAY_MS)
    assert world.take_seqs() == [2]
    world.admit("c.example")
    assert world.take_seqs() == [3], "after that, a new host waits for nothing"


def test_hosts_rest_when_the_next_owner_dies_soon_too(world: ScriptWorld) -> None:
    """The third owner starts no sooner than the second one would have."""
    world.admit(HOST)
    world.claim("b", "token-a", server="another")
    world.claim("c", "token-b", server="another")
    world.admit(OTHER)
    world.advance(DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert sorted(world.take_seqs()) == [1, 2]


def test_a_long_rest_is_not_shortened_by_the_next_owner(world: ScriptWorld) -> None:
    """The first owner may still be fetching, whoever has died since."""
    world.advance(LEASE_MS)
    world.claim("b", server="another")
    world.claim("c", "token-b", server="a third")
    world.admit(HOST)
    world.advance(LEASE_MS + ABORT_MS + DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1]


@pytest.mark.parametrize(("known", "node"), [("nobody", "c"), ("a dead one", "c"), ("who claims", "b")])
def test_hosts_rest_when_redis_has_forgotten_the_last_claim(world: ScriptWorld, known: str, node: str) -> None:
    """The files know a later epoch than Redis does. Its owner may stand still, with fetches under way.

    That the owner before it is dead, or is who claims now, says nothing of that.
    """
    world.claim("b", "token-a")
    epoch = world.who.epoch
    if known == "nobody":
        world.client.delete(world.keys.owner)
    claim = world.claim(node, "token-b", epoch_min=epoch + 1, server="another")
    world.admit(HOST)
    world.advance(DEADLINE_MS + DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1]
    assert isinstance(claim, GrantedClaim)
    assert claim.rest_ms == world.now_ms - 1


def test_hosts_do_not_rest_after_the_owner_has_left(world: ScriptWorld) -> None:
    """If the release is known, so is everything before it."""
    world.admit(HOST)
    assert world.runner.run(scripts.release_partition(world.keys, world.who)) == 1
    world.claim("b", epoch_min=world.who.epoch, server="another")
    assert world.take_seqs() == [1]


def test_hosts_do_not_rest_when_the_owner_claims_again_itself(world: ScriptWorld) -> None:
    """It knows what it has fetched, and says so in the comparison that follows."""
    world.admit(HOST)
    world.claim("a", epoch_min=world.who.epoch, server="")
    assert world.take_seqs() == [1]


def test_after_a_comparison_redis_knows_all_fetches_again(world: ScriptWorld) -> None:
    """Hosts need no rest when the owner dies later, on the server it has compared with."""
    world.admit(HOST)
    world.claim("a", epoch_min=world.who.epoch, server="")
    world.reconcile(server="another")
    world.claim("b", "token-a", server="another")
    assert world.take_seqs() == [1]


def test_before_the_comparison_it_does_not(world: ScriptWorld) -> None:
    """An owner that dies between its claim and the comparison has told nobody."""
    world.admit(HOST)
    world.claim("a", epoch_min=world.who.epoch, server="")
    world.claim("b", "token-a", server="another")
    assert world.take_seqs() == []


def test_the_delay_that_robots_txt_asks_for_is_known_before_its_fetch_has_ended(world: ScriptWorld) -> None:
    """The owner dies after it has stored the rules, and before it gives the URL back."""
    world.admit(HOST)
    assert world.take_seqs() == [1]
    put_rules(world, HOST, CRAWL_DELAY_MS)
    world.claim("b", "token-a")
    world.advance(CRAWL_DELAY_MS - 1)
    assert world.take_seqs() == []
    world.advance(2)
    assert world.take_seqs() == [1]


def test_rules_never_shorten_a_delay(world: ScriptWorld) -> None:
    put_rules(world, HOST, CRAWL_DELAY_MS)
    put_rules(world, HOST, 0)
    assert world.client.hget(world.keys.host + HOST, "delay") == str(CRAWL_DELAY_MS).encode()
