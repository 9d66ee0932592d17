"""Who lives, who is provably dead, who should own what."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl import membership
from bigcrawl.scheduler.crawl.alike import FIELD, LEASES, SPIDER, VERSION, refusal
from bigcrawl.scheduler.crawl.membership import Membership
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def members(tmp_path: Path, crawl_name: str) -> Iterator[list[Membership]]:
    """Three nodes of a crawl on one machine; their locks end with the test."""
    config = make_config(tmp_path, crawl_name)
    made = [Membership(config, f"node-{i}") for i in range(3)]
    yield made
    for member in made:
        member.unlock()


def test_living_node_is_not_dead(members: list[Membership]) -> None:
    """A node that holds its lock is alive, for the others and for itself."""
    first, second, _ = members
    first.lock()
    assert not second.is_dead(first.token)
    assert not first.is_dead(first.token)


def test_node_that_lost_its_lock_is_provably_dead(members: list[Membership]) -> None:
    """The kernel frees a killed process' lock; the file that stays behind proves the death."""
    first, second, _ = members
    first.lock()
    first.unlock(left=False)
    assert second.is_dead(first.token)


def test_nothing_is_proved_without_the_file_or_on_another_boot(members: list[Membership]) -> None:
    """No lock file, another machine or another boot: one must wait for the lease."""
    first, second, _ = members
    first.lock()
    first.unlock(left=False)
    _, _, node = first.token.partition(":")
    assert not second.is_dead(f"another-boot:{node}")
    assert not second.is_dead("")
    first.lock()
    first.unlock()
    assert not second.is_dead(first.token)


def test_process_is_here_while_it_has_its_lock(members: list[Membership]) -> None:
    """Not once it is dead or has left, nor on another boot."""
    first, second, _ = members
    first.lock()
    _, _, node = first.token.partition(":")
    assert second.is_here(first.token)
    assert not second.is_here(f"another-boot:{node}")
    assert not second.is_here("")
    first.unlock(left=False)
    assert not second.is_here(first.token)
    first.lock()
    first.unlock()
    assert not second.is_here(first.token)


def test_directory_is_a_nodes_own_while_one_of_its_files_is_there(members: list[Membership], tmp_path: Path) -> None:
    """Its lock alone may go: another machine may take it for a dead node's. A file of the same name is not its own."""
    first = members[0]
    first.lock()
    [lock], [slot] = tmp_path.rglob("*.lock"), tmp_path.rglob("*.slot")
    first.require_place()
    lock.unlink()
    first.require_place()
    slot.rename(slot.with_suffix(".old"))
    slot.touch()
    with pytest.raises(TransientStoreError, match="is not the directory that this crawl has"):
        first.require_place()
    slot.with_suffix(".old").replace(slot)
    first.require_place()


def test_node_is_alone_here_while_no_other_has_its_lock(members: list[Membership]) -> None:
    """Its own does not count, nor do those of the dead, which stay behind."""
    first, second, _ = members
    first.lock()
    assert first.is_alone_here()
    assert not second.is_alone_here()
    second.lock()
    assert not first.is_alone_here()
    second.unlock(left=False)
    assert first.is_alone_here()


def test_lock_file_has_its_name_when_it_is_locked(members: list[Membership], monkeypatch: pytest.MonkeyPatch) -> None:
    """So that whoever asks which locks are free cannot have it before its node, which would end then."""
    first, second, _ = members
    lock = fcntl.flock
    named_before: list[list[Path]] = []

    def record_names(fd: int, operation: int) -> None:
        named_before.append(list(first._directory.glob("*.lock")))
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", record_names)
    first.lock()
    assert named_before[0] == []
    assert not second.is_alone_here()
    assert not list(first._directory.glob("*.new"))


def test_asking_does_not_take_the_lock(members: list[Membership]) -> None:
    """Whoever asks for a death certificate leaves the lock to its node."""
    first, second, _ = members
    first.lock()
    first.unlock(left=False)
    assert second.is_dead(first.token)
    first.lock()
    assert not second.is_dead(first.token)


def test_lock_files_of_dead_nodes_are_removed_when_nothing_names_them(members: list[Membership]) -> None:
    """Neither one that lives, nor one whose death somebody may still ask for, nor one that was just begun."""
    dead, named, lives = members
    nodes = [f"node-{i}" for i in range(3)]
    for member in members:
        member.lock()
    directory = lives._directory
    os.close(os.open(directory / "new.lock", os.O_CREAT | os.O_WRONLY))
    for node in nodes:
        os.utime(directory / f"{node}.lock", (0, 0))
    dead.unlock(left=False)
    named.unlock(left=False)
    lives.remove_locks({"node-1"})
    assert sorted(path.name for path in directory.glob("*.lock")) == ["new.lock", "node-1.lock", "node-2.lock"]


def test_state_directory_that_cannot_be_written_is_told(tmp_path: Path, crawl_name: str) -> None:
    """A file where the directory should be: one error with the setting's name, no traceback."""
    (tmp_path / crawl_name).write_text("in the way")
    with pytest.raises(ConfigError, match="BIGCRAWL_STATE_DIR"):
        Membership(make_config(tmp_path, crawl_name), "node").lock()


def test_dead_nodes_lose_their_share_at_once(members: list[Membership], crawl_name: str, redis_url: str) -> None:
    """The reports of provably dead nodes are left out, and removed for everybody."""

    async def scenario() -> None:
        first, second, third = members
        async with connected(redis_url) as client:
            for member in members:
                member.lock()
                await member.beat(client, {"token": member.token})
            await first.beat(client, {"token": first.token})
            assert sorted(first.reports) == [first.node, second.node, third.node]
            before = first.wanted(())
            third.unlock(left=False)
            await first.beat(client, {"token": first.token}, before)
            assert sorted(first.reports) == [first.node, second.node]
            assert len(before) <= len(first.wanted(before)) == 2
            assert await client.command("HEXISTS", CrawlKeys(crawl_name).nodes, third.node) == 0

    asyncio.run(scenario())


def test_live_nodes_share_all_partitions_without_overlap(
    members: list[Membership], crawl_name: str, redis_url: str
) -> None:
    """Once all have heard of all, what they want are disjoint sets that cover everything."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            for _ in range(2):
                for member in members:
                    member.lock() if member._lock_fd is None else None
                    await member.beat(client, {"token": member.token})
            wanted = [member.wanted(()) for member in members]
            assert sorted(p for share in wanted for p in share) == list(range(4))
            await members[0].leave(client)
            await members[1].beat(client, {"token": members[1].token})
            assert members[0].node not in members[1].reports

    asyncio.run(scenario())


def test_a_node_keeps_what_it_owns(members: list[Membership], crawl_name: str, redis_url: str) -> None:
    """Nodes that come later get what it has beyond its share, and want nothing else."""

    async def scenario() -> None:
        first, second, _ = members
        async with connected(redis_url) as client:
            for member in (first, second):
                member.lock()
                await member.beat(client, {"token": member.token})
            await first.beat(client, {"token": first.token}, range(4))
            await second.beat(client, {"token": second.token})
            kept = first.wanted(range(4))
            assert len(kept) == 2
            assert second.wanted(()) == set(range(4)) - kept
            await first.beat(client, {"token": first.token}, kept)
            assert first.wanted(kept) == kept

    asyncio.run(scenario())


def test_a_machines_names_are_used_again(members: list[Membership], crawl_name: str, redis_url: str) -> None:
    """The next process of a machine gets the name of one that has ended, whatever its id."""

    async def scenario() -> None:
        first, second, third = members
        async with connected(redis_url) as client:
            names = []
            for member in (first, second):
                member.lock()
                await member.beat(client, {"token": member.token})
                names.append(member.reports[member.node]["name"])
            first.unlock()
            third.lock()
            await third.beat(client, {"token": third.token})
            assert len(set(names)) == 2
            assert third.reports[third.node]["name"] == names[0]

    asyncio.run(scenario())


def test_repr_names_the_node_and_the_others(members: list[Membership]) -> None:
    """A log line shows who is who."""
    assert repr(members[0]) == "<Membership node-0 among []>"


def member_of(tmp_path: Path, crawl: str, **settings: Any) -> Membership:
    return Membership(make_config(tmp_path, crawl, **settings), f"node-{len(settings)}")


def test_node_with_another_delay_is_refused_while_the_other_one_lives(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The message names the setting and both values; who was first goes on."""
    first = member_of(tmp_path, crawl_name, host_delay=5)
    second = member_of(tmp_path, crawl_name, host_delay=2, lease_seconds=30)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            await first.beat(client, {})
            joining = asyncio.create_task(second.wait_for_alike(client))
            while not joining.done():
                await first.beat(client, {})
                await asyncio.sleep(0.05)
            with pytest.raises(ConfigError, match=r"BIGCRAWL_HOST_DELAY is 2\.0 here and 5\.0 at node node-1"):
                await joining
            assert second.node not in first.reports

    asyncio.run(scenario())


def test_of_two_nodes_that_start_at_once_the_later_one_ends(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Neither saw the other before it was there: the first heartbeat after that tells."""
    first = member_of(tmp_path, crawl_name, robots="obey")
    second = member_of(tmp_path, crawl_name, robots="ignore-i-own-these-hosts", partitions=4)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            await asyncio.gather(first.wait_for_alike(client), second.wait_for_alike(client))
            await first.beat(client, {})
            await asyncio.sleep(0.002)
            with pytest.raises(ConfigError, match=r'BIGCRAWL_ROBOTS is "ignore-i-own-these-hosts" here and obey, the'):
                await second.beat(client, {})
            await first.beat(client, {})

    asyncio.run(scenario())


def test_crawl_goes_on_with_other_settings_when_its_nodes_are_gone(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """One left, one was killed on this machine, one is silent elsewhere until its lease is over."""
    gone = [member_of(tmp_path, crawl_name, host_delay=5, lease_seconds=2)]
    gone += [Membership(make_config(tmp_path, crawl_name, host_delay=5, lease_seconds=2), f"gone-{n}") for n in "ab"]
    new = member_of(tmp_path, crawl_name, lease_seconds=2, host_delay=3, robots="obey")

    async def scenario() -> None:
        async with connected(redis_url) as client:
            for member in gone:
                await member.beat(client, {"token": member.token})
            await gone[0].leave(client)
            gone[1].lock()
            gone[1].unlock(left=False)
            await new.wait_for_alike(client)
            await new.beat(client, {})
            assert list(new.reports) == [new.node]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("0.1.0", "0.1.7", None),
        ("0.1.0+local", "0.1.1.dev3", None),
        ("0.1.7", None, None),
        ("0.2.0", "0.1.7", "bigcrawl is 0.2.0 here and 0.1.7 at node other, .*; install 0.1 here, or stop all nodes"),
        ("0.2.0", None, "bigcrawl is 0.2.0 here and 0.1 at node other"),
        ("1.1.0", "0.1.0", "bigcrawl is 1.1.0 here and 0.1.0 at node other"),
        ("0.10.0", "0.1.0", "bigcrawl is 0.10.0 here"),
    ],
)
def test_nodes_of_one_minor_release_work_together_and_no_others(
    ours: str, theirs: str | None, said: str | None
) -> None:
    """A report without a version is of the first release, whose nodes did not say theirs."""
    report = {FIELD: {}} if theirs is None else {FIELD: {}, VERSION: theirs}
    error = refusal("other", report, {FIELD: {}, VERSION: ours})
    if said is None:
        assert error is None
    else:
        assert re.search(said, str(error))


def test_a_node_of_another_release_is_refused_whatever_its_settings(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release comes first: another one may have other settings. The first node's settings say nothing of it."""
    first = member_of(tmp_path, crawl_name, host_delay=5)
    monkeypatch.setattr(membership, "__version__", "99.0.0")
    second = member_of(tmp_path, crawl_name, host_delay=2, lease_seconds=30)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            await first.beat(client, {})
            assert not any("99" in value or "0.1" in value for value in first._report[FIELD].values())
            with pytest.raises(ConfigError, match=r"bigcrawl is 99\.0\.0 here"):
                await second.beat(client, {})

    asyncio.run(scenario())


def test_node_that_does_not_know_block_leases_is_refused(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """By a live node that does, and the other way round: it would claim that node's partitions after one lease."""
    ours = member_of(tmp_path, crawl_name)._alike
    theirs = ours | {FIELD: {name: value for name, value in ours[FIELD].items() if name != LEASES}}
    assert refusal("other", ours, ours) is None
    for one, other in ((ours, theirs), (theirs, ours)):
        assert "install the same build on all nodes" in str(refusal("other", one, other))


def test_what_may_differ_is_not_compared(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nodes may have other directories for pages, other speeds of their own, other names."""
    first = member_of(tmp_path, crawl_name)
    second = member_of(tmp_path, crawl_name, warc_dir="elsewhere", in_process_max=7, backoff=3, node="other")

    async def scenario() -> None:
        async with connected(redis_url) as client:
            for member in (first, second):
                await member.wait_for_alike(client)
                await member.beat(client, {})

    asyncio.run(scenario())


def test_long_values_are_compared_whole_and_told_in_part(tmp_path: Path, crawl_name: str) -> None:
    """A blacklist of thousands of hosts is not sent around every second."""
    hosts = [f"host{n}.example" for n in range(1_000)]
    one = make_config(tmp_path, crawl_name, blacklist=hosts).alike["BIGCRAWL_BLACKLIST"]
    two = make_config(tmp_path, crawl_name, blacklist=[*hosts[:-1], "other.example"]).alike["BIGCRAWL_BLACKLIST"]
    assert one != two
    assert max(map(len, (one, two))) < 80


def test_another_spider_is_refused_by_its_name_whatever_its_settings() -> None:
    """Whoever sets them back as told would be refused by the next one."""
    theirs = {FIELD: {"USER_AGENT": "a", SPIDER: "one"}}
    error = refusal("other", theirs, {FIELD: {"USER_AGENT": "b", SPIDER: "two"}, VERSION: "0.1.0"})
    assert re.search("the spider is two here and one at node other.*give two a BIGCRAWL_CRAWL of its own", str(error))
