"""The crawl at a glance, and the two looks that find it finished."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.redisdb.scripts import EndedUrl, GrantedClaim, Identity
from bigcrawl.scheduler.crawl.survey import AT_ONCE, FinishCheck, Survey, survey
from bigcrawl.scheduler.records.inbox_entry import id_order
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import connected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Call, PartitionView
    from tests.support.redis_servers.redis_cluster import PrivateCluster

LEASE_MS = 60_000


async def own(client: RedisClient, crawl: str, partition: int = 0) -> tuple[PartitionKeys, Identity]:
    """Claim a partition, with nothing in it."""
    keys = PartitionKeys(crawl, partition)
    call = scripts.claim_partition(
        keys,
        node="n",
        token="",
        dead_token="",
        epoch_min=0,
        generation=1,
        lease_ms=LEASE_MS,
        deadline_ms=0,
        abort_ms=0,
        forgotten_ms=0,
        delay_ms=0,
    )
    [claim] = await client.run([call])
    assert isinstance(claim, GrantedClaim)
    return keys, Identity("n", claim.epoch, 1)


async def admit(client: RedisClient, keys: PartitionKeys, who: Identity, *hosts: str) -> None:
    rows = [(host, i, b"%d:url" % i) for i, host in enumerate(hosts)]
    await client.run([scripts.admit_urls(keys, who, 1, b"", 1, rows)])


def test_sums_are_over_all_partitions(crawl_name: str, redis_url: str) -> None:
    """Hosts and URLs by state, pages by status, owners by node."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            for partition in (0, 2):
                keys, who = await own(client, crawl_name, partition)
                await admit(client, keys, who, "a.example", "b.example", "b.example")
                await client.run([scripts.exchange_urls(keys, who, 1, 1, 0, 0)])
                ended = [EndedUrl(0, 60_000, b"", "status:200", 12)]
                await client.run([scripts.exchange_urls(keys, who, 1, 0, 0, 0, ended)])
                await client.run([scripts.append_batch(keys, "n", 1, 1, b"batch", 7)])
                await client.run([scripts.exchange_urls(keys, who, 1, 1, 0, 0)])
            seen = await survey(client, crawl_name, 4)
            assert (seen.partitions, seen.owned, seen.owners["n"]) == (4, 2, 2)
            assert (seen.urls_inbox, seen.urls_queued, seen.urls_taken, seen.waiting) == (14, 2, 2, 16)
            assert (seen.hosts_busy, seen.inboxes_unfolded) == (2, 0), "inboxes matter where nothing else waits"
            assert (seen.pages, seen.counts["bytes"], seen.counts["ended"]) == (2, 24, 2)
            assert not seen.is_empty

    asyncio.run(scenario())


COUNTED = ("seen", "repeats", "imported", "chosen_urls", "admitted_urls", "ended", "moved", "lost")
FIGURES = (
    "appended_urls",
    "folded_urls",
    "waiting",
    "hot",
    "withheld",
    "asked",
    "status:200",
    "error:dns",
    "bytes",
    *COUNTED,
    "rejected",
    "untold",
)


def expected_of(views: Sequence[PartitionView]) -> Survey:
    """What the figures of single partitions add up to."""
    seen = Survey(len(views))
    for partition, view in enumerate(views):
        for name, value in view.state.items():
            seen.counts[name] += 0 if name in ("folded", "asked") else int(value)
        if view.node:
            seen.named.add(view.node)
            seen.owners.update([view.node] * (view.lease_left_ms > 0))
        if view.count("rejected"):
            seen.rejected_in.append(partition)
        pending = view.count("chosen_urls") - view.count("admitted_urls")
        on_disk = max(0, view.count("waiting") + pending)
        in_inbox = max(0, view.count("appended_urls") - view.count("folded_urls"))
        queued = max(0, view.count("hot"))
        if view.count("damaged"):
            seen.urls_damaged += in_inbox + on_disk + queued + view.taken
            continue
        if view.count("withheld"):
            seen.asked.add(view.count("asked"))
        for name in ("hosts_ready", "hosts_waiting", "hosts_busy", "hosts_snoozed", "hosts_retired"):
            setattr(seen, name, getattr(seen, name) + getattr(view, name))
        here = view.count("waiting") + pending + view.count("hot") + view.taken + view.count("withheld")
        if not view.count("forgot"):
            left = view.count("ended") + view.count("moved") + view.count("lost")
            known = view.count("seen") + view.count("repeats") - view.count("imported")
            seen.urls_uncounted += abs(known - left - here) if "repeats" in view.state else 0
        seen.urls_inbox += in_inbox
        seen.urls_disk += on_disk
        seen.urls_queued += queued
        seen.urls_taken += view.taken
        seen.inboxes_unfolded += not queued and id_order(view.inbox_id) > id_order(view.last_folded_entry)
        seen.batches_pending += view.count("chosen") > view.count("admitted")
        seen.rows_untold += view.count("untold")
        if seen.first_with_work is None and not seen.is_empty:
            seen.first_with_work = partition
    seen.owned = seen.owners.total()
    del seen.counts["folded"], seen.counts["asked"]
    return seen


async def fill_at_random(client: RedisClient, crawl: str, partitions: int, dice: Random) -> None:
    """Give partitions keys with figures of their own; some have nothing, some are damaged."""
    now_ms = client.now_ms()
    rows: list[tuple[Any, ...]] = []
    for keys in (PartitionKeys(crawl, number) for number in range(partitions)):
        if dice.random() < 0.3:
            continue
        figures = {name: dice.choice([0, 0, dice.randrange(-3 if name == "hot" else 0, 10**6)]) for name in FIGURES}
        figures |= {"forgot": 1} if dice.random() < 0.3 else {}
        figures |= {"damaged": dice.choice([0, 0, 1]), "chosen": dice.randrange(3), "admitted": dice.randrange(3)}
        rows.append(("HSET", keys.state, *(word for pair in figures.items() for word in pair)))
        if dice.random() < 0.8:
            lease_ms = now_ms + dice.choice([-60_000, 60_000])
            rows.append(("HSET", keys.owner, "node", f"n{dice.randrange(3)}", "epoch", 1, "lease_ms", lease_ms))
        for heap, away_ms in ((keys.ready, 0), (keys.snoozed, 10**15)):
            for host in range(dice.randrange(4)):
                due_ms = now_ms + dice.choice([-60_000, 60_000, 90_000 + away_ms])
                rows.append(("ZADD", heap, due_ms + dice.random(), f"h{host}.example"))
        rows += [("HSET", keys.busy, f"b{n}.example", 1) for n in range(dice.randrange(3))]
        rows += [("HSET", keys.taken, n, "url") for n in range(dice.randrange(3))]
        if dice.random() < 0.7:
            last = f"{dice.choice([9, 10])}-{dice.choice([9, 10])}"
            rows += [
                ("XADD", keys.inbox, last, "b", "batch"),
                ("HSET", keys.state, "folded", f"{dice.choice([9, 10])}-9"),
            ]
    await client.commands(rows)


@awaited
async def test_survey_is_the_sum_of_looks_at_each_partition(crawl_name: str, redis_url: str) -> None:
    """Whatever they hold, damaged partitions and dead owners included, and across the commands of a large crawl."""
    partitions = AT_ONCE + 20
    async with connected(redis_url) as client:
        await client.ping()
        for seed in range(5):
            await fill_at_random(client, f"{crawl_name}x{seed}", partitions, Random(seed))
            keys = [PartitionKeys(f"{crawl_name}x{seed}", number) for number in range(partitions)]
            views = await client.run([scripts.look_partition(each) for each in keys])
            seen = await survey(client, f"{crawl_name}x{seed}", partitions)
            due = {view.next_due_ms for view in views if view.next_due_ms >= 0 and not view.count("damaged")}
            assert seen.next_due is not None
            assert seen.next_due.due_ms == min(due)
            seen.next_due = None
            assert seen == expected_of(views)


@awaited
async def test_survey_of_a_cluster_is_the_same(crawl_name: str, redis_cluster: PrivateCluster) -> None:
    """There the keys of two partitions are on different servers."""
    async with connected(redis_cluster.url) as client:
        await client.ping()
        await fill_at_random(client, crawl_name, 12, Random(3))
        views = await client.run([scripts.look_partition(PartitionKeys(crawl_name, number)) for number in range(12)])
        seen = await survey(client, crawl_name, 12)
        seen.next_due = None
        assert seen == expected_of(views)


def test_no_field_of_a_partition_can_break_a_survey(crawl_name: str, redis_url: str) -> None:
    """A field that is no number counts as 0; a sum is exact up to 2**53."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            keys = [PartitionKeys(crawl_name, number) for number in range(2)]
            await client.command("HSET", keys[0].state, "bytes", 2**52, "odd", "word")
            await client.command("HSET", keys[1].state, "bytes", 2**52 - 1)
            seen = await survey(client, crawl_name, 2)
            assert (seen.counts["bytes"], seen.counts["odd"]) == (2**53 - 1, 0)

    asyncio.run(scenario())


def test_crawl_is_finished_at_the_second_look_that_sees_nothing_new(crawl_name: str, redis_url: str) -> None:
    """One look at an empty crawl is not enough: what moved during it may be anywhere."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            keys, who = await own(client, crawl_name)
            check = FinishCheck(client, crawl_name, 1)
            assert not await check.look()
            await admit(client, keys, who, "a.example")
            await client.run([scripts.exchange_urls(keys, who, 1, 1, 0, 0)])
            await client.run([scripts.exchange_urls(keys, who, 1, 0, 0, 0, [EndedUrl(0, 0)])])
            assert not await check.look(), "something came and went between the two looks"
            assert await check.look()
            assert await check.is_announced(await survey(client, crawl_name, 1))
            assert await FinishCheck(client, crawl_name, 1).look(), "another node believes it"

    asyncio.run(scenario())


@awaited
async def test_word_of_the_end_that_arrives_late_is_not_believed(crawl_name: str, redis_url: str) -> None:
    """It was said of the crawl as it was; more has come and gone since, and has to be looked at twice."""
    async with connected(redis_url) as client:
        keys, who = await own(client, crawl_name)
        check = FinishCheck(client, crawl_name, 1)
        assert [await check.look() for _ in range(2)] == [False, True]
        said = ("HSET", CrawlKeys(crawl_name).crawl, "finished")
        word = await client.command("HGET", *said[1:])
        await check.revoke_end()
        await admit(client, keys, who, "a.example")
        await client.run([scripts.exchange_urls(keys, who, 1, 1, 0, 0)])
        await client.run([scripts.exchange_urls(keys, who, 1, 0, 0, 0, [EndedUrl(0, 0)])])
        await client.command(*said, word)
        assert not await FinishCheck(client, crawl_name, 1).look()


@awaited
async def test_partition_that_was_not_empty_is_looked_at_alone(crawl_name: str, redis_url: str) -> None:
    """As long as it is not empty, the others need no look: a crawl that rests for hours has thousands of them."""
    async with connected(redis_url) as client:
        busy, partitions = 70, 100
        keys, who = await own(client, crawl_name, busy)
        await admit(client, keys, who, "a.example")
        check = FinishCheck(client, crawl_name, partitions)
        asked: list[int] = []
        run = client.run

        async def counted(calls: Sequence[Call[Any]]) -> list[Any]:
            keys = [{key.partition("}")[0] for key in call.keys if ":leases:" not in key} for call in calls]
            asked.append(sum(map(len, keys)))
            return await run(calls)

        client.run = counted  # type: ignore[method-assign]
        assert [await check.look() for _ in range(3)] == [False] * 3
        assert asked == [partitions, 1, 1]
        await run([scripts.exchange_urls(keys, who, 1, 1, 0, 0)])
        assert not await check.look(), "it is taken"
        await run([scripts.exchange_urls(keys, who, 1, 0, 0, 0, [EndedUrl(0, 0)])])
        assert [await check.look() for _ in range(2)] == [False, True]
        assert asked[3:] == [1, 1, partitions, partitions, 1], "and the end is announced"


def test_crawl_with_urls_anywhere_is_not_finished(crawl_name: str, redis_url: str) -> None:
    """In the inbox, on disk, in a host's queue, taken: none of them is the end."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            keys, who = await own(client, crawl_name)
            check = FinishCheck(client, crawl_name, 1)
            await client.run([scripts.append_batch(keys, "n", 1, 1, b"batch", 1)])
            assert [await check.look() for _ in range(3)] == [False] * 3
            [view] = await client.run([scripts.look_partition(keys)])
            state = {"folded": view.inbox_id, "folded_urls": 1, "waiting": 1}
            await client.run([scripts.trim_partition(keys, who, "0-0", 0, state)])
            assert [await check.look() for _ in range(3)] == [False] * 3
            await client.run([scripts.trim_partition(keys, who, "0-0", 0, {"waiting": 0})])
            await admit(client, keys, who, "a.example")
            assert [await check.look() for _ in range(3)] == [False] * 3
            await client.run([scripts.exchange_urls(keys, who, 1, 1, 0, 0)])
            assert [await check.look() for _ in range(3)] == [False] * 3
            await client.run([scripts.exchange_urls(keys, who, 1, 0, 0, 0, [EndedUrl(0, 0)])])
            assert [await check.look() for _ in range(2)] == [False, True]

    asyncio.run(scenario())


def test_waiting_host_holds_the_end_up_even_if_the_counter_is_wrong(crawl_name: str, redis_url: str) -> None:
    """A host with URLs is ready or busy; that is believed more than the count of hot URLs."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            keys, who = await own(client, crawl_name)
            await admit(client, keys, who, "a.example")
            await client.command("HSET", keys.state, "hot", "-3")
            assert not (await survey(client, crawl_name, 1)).is_empty

    asyncio.run(scenario())


def test_start_requests_under_way_hold_the_end_up(crawl_name: str, redis_url: str) -> None:
    """A claimed start is not over before it is done, or given up."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            crawl = CrawlKeys(crawl_name)
            check = FinishCheck(client, crawl_name, 1)
            await client.run([scripts.claim_start(crawl, "n", "digest", LEASE_MS)])
            assert [await check.look() for _ in range(3)] == [False] * 3
            await client.run([scripts.claim_start(crawl, "n", "digest", LEASE_MS, undone=True)])
            assert [await check.look() for _ in range(2)] == [False, True]
            await client.run([scripts.claim_start(crawl, "n", "digest", LEASE_MS)])
            assert not await check.look(), "a new start takes the word back"
            await client.run([scripts.claim_start(crawl, "n", "digest", LEASE_MS, done=True)])
            assert [await check.look() for _ in range(2)] == [False, True]

    asyncio.run(scenario())


def test_start_of_a_dead_node_does_not_hold_the_end_up_for_ever(crawl_name: str, redis_url: str) -> None:
    """Start requests that nobody runs any more, of seeds long replaced for instance, are not under way."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            check = FinishCheck(client, crawl_name, 1)
            await client.run([scripts.claim_start(CrawlKeys(crawl_name), "dead", "digest", 1_000, now_ms=1)])
            assert [await check.look() for _ in range(2)] == [False, True]

    asyncio.run(scenario())


def test_stream_ids_compare_as_numbers() -> None:
    """1700-10 comes after 1700-9, and 1701-0 after both."""
    ids = ["1701-0", "1700-10", "1700-9", "0-0"]
    assert sorted(ids, key=id_order) == ["0-0", "1700-9", "1700-10", "1701-0"]
