"""Deaths are counted by the claim, once each, for what was in process; dead letters are kept and taken away."""

from __future__ import annotations

import pytest

from bigcrawl.exceptions import OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import EndedUrl, GrantedClaim, Identity, RefusedClaim
from bigcrawl.scheduler.records.at_gates import Suspicion
from tests.support.redis_servers.script_world import ABORT_MS, DEADLINE_MS, DELAY_MS, LEASE_MS, ScriptWorld


def claim(
    world: ScriptWorld, node: str, in_process: str, *, told_of: str = "token-a", dead: bool = True
) -> GrantedClaim | RefusedClaim:
    """Claim for `node`, telling of what the owner of a token had in process."""
    world.generation += 1
    call = scripts.claim_partition(
        world.keys,
        node=node,
        token=f"token-{node}",
        lease_ms=LEASE_MS,
        epoch_min=0,
        dead_token=told_of if dead else "",
        deadline_ms=DEADLINE_MS,
        abort_ms=ABORT_MS,
        forgotten_ms=DEADLINE_MS,
        delay_ms=DELAY_MS,
        generation=world.generation,
        now_ms=world.now_ms,
        told_of=told_of,
        in_process=in_process,
    )
    result: GrantedClaim | RefusedClaim = world.runner.run(call)
    if isinstance(result, GrantedClaim):
        world.who = Identity(node, result.epoch, result.generation)
    return result


def suspicions(claimed: GrantedClaim | RefusedClaim) -> dict[int, Suspicion]:
    assert isinstance(claimed, GrantedClaim)
    return {seq: Suspicion.read(text) for seq, text in claimed.deaths.items()}


def try_alone(world: ScriptWorld, seq: int) -> bool:
    return bool(world.runner.run(scripts.try_suspect(world.keys, world.who, seq)))


@pytest.fixture
def taken(world: ScriptWorld) -> ScriptWorld:
    """Node "a" has URLs 1, 2 and 3 of as many hosts."""
    world.admit("a.example", "b.example", "c.example")
    assert world.take_seqs() == [1, 2, 3]
    return world


def test_only_what_was_in_process_has_died(taken: ScriptWorld) -> None:
    """Of three taken URLs one was answered and one being fetched; the third had not been begun."""
    found = suspicions(claim(taken, "b", " 1a 2f "))
    assert found == {1: Suspicion(1, 1, False), 2: Suspicion(1, 0, False)}


def test_all_that_was_taken_has_died_where_nobody_can_tell(taken: ScriptWorld) -> None:
    """On another machine the record cannot be read."""
    assert suspicions(claim(taken, "b", "*")) == dict.fromkeys((1, 2, 3), Suspicion(1, 0, False))


def test_numbers_are_compared_whole(world: ScriptWorld) -> None:
    """URL 1 is not in process because URL 11 or 21 is."""
    world.admit(*(f"{name}.example" for name in "abcdefghijk"))
    world.take()
    assert list(suspicions(claim(world, "b", " 11a 21a "))) == [11]


def test_claim_that_tells_of_nobody_learns_whose_the_partition_was(taken: ScriptWorld) -> None:
    """An owner whose lease is over and that had URLs taken: who asks is told its token, and changes nothing."""
    taken.advance(LEASE_MS + 1)
    refusal = claim(taken, "b", "*", told_of="", dead=False)
    assert refusal == RefusedClaim(-1, "a", "token-a")
    assert taken.snapshot().taken.keys() == {1, 2, 3}
    assert claim(taken, "b", "*", told_of="token-x", dead=False) == refusal, "it tells of another one"
    assert list(suspicions(claim(taken, "b", " 2a ", dead=False))) == [2]


def test_partition_with_nothing_taken_is_claimed_at_once(world: ScriptWorld) -> None:
    """There is nothing to tell of it."""
    world.advance(LEASE_MS + 1)
    assert isinstance(claim(world, "b", "*", told_of="", dead=False), GrantedClaim)


def test_death_is_counted_once_however_often_it_is_claimed(taken: ScriptWorld) -> None:
    """A repeat after a lost reply finds nothing taken any more."""
    claim(taken, "b", " 1a ")
    assert suspicions(claim(taken, "b", " 1a ")) == {1: Suspicion(1, 1, False)}


def test_node_that_claims_its_own_again_has_not_died(taken: ScriptWorld) -> None:
    """As all nodes do after a restart of Redis."""
    assert suspicions(claim(taken, "a", " 1a ", told_of="", dead=False)) == {}


def test_trial_alone_holds_for_its_take(taken: ScriptWorld) -> None:
    """Alone is who was taken and told of, and not given back since."""
    claim(taken, "b", " 1a 2f ")
    taken.advance(DELAY_MS)
    taken.take()
    assert try_alone(taken, 1)
    assert try_alone(taken, 1), "repeated, it changes nothing"
    assert try_alone(taken, 2)
    taken.end(EndedUrl(2, DELAY_MS, b"="))
    taken.advance(DELAY_MS)
    assert taken.take_seqs() == [2]
    found = suspicions(claim(taken, "c", " 1a 2a ", told_of="token-b"))
    assert found == {1: Suspicion(2, 2, True), 2: Suspicion(2, 1, False)}


def test_death_alone_of_which_nobody_can_tell_counts_with_the_page(taken: ScriptWorld) -> None:
    """So a URL that kills machine after machine becomes a dead letter as soon as on one."""
    for node, dead in (("b", "a"), ("c", "b"), ("d", "c")):
        claimed = claim(taken, node, "*", told_of=f"token-{dead}")
        taken.advance(DELAY_MS)
        taken.take()
        try_alone(taken, 1)
    found = suspicions(claimed)
    assert found[1].is_proof(3)
    assert not found[2].is_proof(3)


def test_trial_can_end_before_its_url(taken: ScriptWorld) -> None:
    """One that lasts too long goes on among others, and is alone no more."""
    claim(taken, "b", " 1a ")
    taken.advance(DELAY_MS)
    taken.take()
    assert try_alone(taken, 1)
    assert taken.runner.run(scripts.try_suspect(taken.keys, taken.who, 1, alone=False))
    assert suspicions(claim(taken, "c", " 1a ", told_of="token-b")) == {1: Suspicion(2, 2, False)}


def test_trial_is_only_of_suspects_that_are_taken(taken: ScriptWorld) -> None:
    """No suspect, not taken, or another's: no trial."""
    assert not try_alone(taken, 1)
    claim(taken, "b", " 1a ")
    assert not try_alone(taken, 1)
    taken.who = Identity("a", 1)
    with pytest.raises(OwnershipLostError):
        try_alone(taken, 1)


def test_letters_are_kept_once_each_and_counted(world: ScriptWorld) -> None:
    """Burying and taking away can be repeated; there are no more than so many."""

    def bury(key: int) -> bool:
        return bool(world.runner.run(scripts.bury_url(world.keys, world.who, key, b"letter", 2)))

    assert [bury(7), bury(7), bury(8)] == [True] * 3
    assert world.count("dead") == 2
    assert not bury(9)
    assert bury(8), "told again after a lost reply"
    assert [world.runner.run(scripts.unbury_urls(world.keys, [7, 9])) for _ in range(2)] == [1, 0]
    assert world.count("dead") == 1
    world.who = Identity("other", 9)
    with pytest.raises(OwnershipLostError):
        bury(9)
