"""A reply that is lost, a request that comes late: what is in doubt is compared, and nothing is done twice or left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import StaleCallError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.owner import reconciliation
from bigcrawl.scheduler.owner.parking import park_snoozed
from tests.support.redis_servers.lost_replies import LostReplies, once
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from tests.unit.scheduler.world import World

HOST = "a.example"
PAGES = [f"http://{HOST}/{page}" for page in range(6)]


async def begun(w: World, *urls: str) -> tuple[Node, OwnedPartition]:
    """A node with these URLs of one partition in Redis, none taken."""
    node = await w.joined()
    for url in queued(*urls):
        node.offer(url)
    await node.pump.flush()
    node.fold.record_inboxes()
    w.clock.advance(5_000)
    await node.fold.turn()
    [mine] = node.ownership.owned.values()
    assert mine.hot.urls == len(urls)
    return node, mine


async def hot_in_redis(node: Node, mine: OwnedPartition) -> dict[str, int]:
    """What `OwnedPartition.hot` is to be."""
    hosts = {held.host for held in node.handout.held} | {HOST}
    counts = {host: int(await node.parts.crawl.client.command("ZCARD", mine.keys.back + host)) for host in hosts}
    for held in node.handout.held:
        counts[held.host] += 1
    return {host: count for host, count in counts.items() if count}


async def snooze(node: Node, mine: OwnedPartition) -> None:
    """Redis says that the host is away for an hour."""
    await node.parts.crawl.client.commands(
        [
            ("ZADD", mine.keys.snoozed, node.parts.crawl.client.now_ms() + 3_600_000, HOST),
            ("HINCRBY", mine.keys.state, "snoozes", "1"),
        ]
    )
    await node.beat.turn()


@awaited
@pytest.mark.parametrize("is_late", [False, True], ids=["carried out", "late"])
async def test_lost_reply_of_parking_leaves_no_wrong_count(
    tmp_path: Path, crawl_name: str, redis_url: str, is_late: bool
) -> None:
    """The node counts its hot URLs again, and a call that arrives later than that changes nothing."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        await snooze(node, mine)
        losing = LostReplies(node.parts.crawl.client, once("park_urls"), is_late=is_late)
        with pytest.raises(TransientStoreError):
            await park_snoozed(node.parts.crawl.client, [mine], w.clock.monotonic_ms())
        assert node.parts.crawl.client.in_doubt == {0}
        await node.ownership.reconciliation.settle_doubts()
        assert mine.hot.by_host == await hot_in_redis(node, mine) == {HOST: 6 if is_late else 1}
        if is_late:
            [refused] = await losing.deliver()
            assert isinstance(refused, StaleCallError)
        assert mine.hot.urls == sum((await hot_in_redis(node, mine)).values())
        assert mine.inbox.has_urls, "what was parked is found, though nobody told of it"


@awaited
async def test_lost_reply_of_dropping_leaves_no_wrong_count(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nor where robots.txt forbids what waits."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        members = await node.parts.crawl.client.command("ZRANGE", mine.keys.back + HOST, 0, 1)
        LostReplies(node.parts.crawl.client, once("drop_urls"))
        call = scripts.drop_urls(mine.keys, mine.identity, HOST, "dropped:forbidden", [(m, b"x" * 12) for m in members])
        with pytest.raises(TransientStoreError):
            await node.parts.crawl.client.run([call])
        await node.pump.turn()
        assert mine.hot.by_host == await hot_in_redis(node, mine) == {HOST: 4}


@awaited
async def test_crawl_ends_whichever_reply_is_lost(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Each script that the crawl calls loses one reply, one after the other; all is fetched once, and it ends."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node = await w.joined()
        lost: set[str] = set()

        def loses(calls: list[Any]) -> bool:
            names = {call.name for call in calls} - lost - {"tell_time"}
            lost.update(names)
            return bool(names)

        LostReplies(node.parts.crawl.client, loses)
        for url in queued(*PAGES):
            node.offer(url)
        fetched = []
        for _ in range(60):
            for work in (node.pump.turn, node.fold.turn, node.beat.turn, node.watch.turn):
                try:
                    await work()
                except TransientStoreError:
                    continue
            w.clock.advance(500)
            while (held := node.handout.buffer.pop()) is not None:
                fetched.append(held.url)
                w.end(node, held)
        assert sorted(fetched) == PAGES
        assert node.progress.is_finished
        assert {"append_batch", "exchange_urls", "admit_urls", "trim_partition", "look_partition"} <= lost
        [mine] = node.ownership.owned.values()
        assert not mine.hot.by_host
        seen = await node.progress.survey()
        assert seen.pages == seen.counts["ended"] == node.progress.pages == len(PAGES), "and counted once"


@awaited
@pytest.mark.parametrize("end", ["acknowledged", "returned"])
async def test_late_end_does_not_end_the_next_try(tmp_path: Path, crawl_name: str, redis_url: str, end: str) -> None:
    """A word of a URL's end that arrives after both sides were compared is refused, whatever was taken since."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        await node.pump.turn()
        [held] = node.handout.held
        losing = LostReplies(node.parts.crawl.client, once("exchange_urls"), is_late=True)
        if end == "acknowledged":
            w.end(node, held)
        else:
            node.handout.give_back(held, 0)
        w.clock.advance(500)
        with pytest.raises(TransientStoreError):
            await node.pump.turn()
        w.clock.advance(1_000)
        await node.pump.turn()  # compared; the end is told again, and a URL is taken
        before = await node.parts.crawl.client.command("HGETALL", mine.keys.taken)
        assert before
        [refused] = await losing.deliver()
        assert isinstance(refused, StaleCallError)
        assert await node.parts.crawl.client.command("HGETALL", mine.keys.taken) == before
        assert len(node.handout.held) == 1


@awaited
async def test_late_take_hands_out_nothing(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A host is not asked twice at a time because a take came when nobody waited for it any more."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        losing = LostReplies(node.parts.crawl.client, once("exchange_urls"), is_late=True)
        with pytest.raises(TransientStoreError):
            await node.pump.turn()
        await node.ownership.reconciliation.settle_doubts()
        [refused] = await losing.deliver()
        assert isinstance(refused, StaleCallError)
        assert not await node.parts.crawl.client.command("HLEN", mine.keys.taken)


@awaited
@pytest.mark.parametrize("script", ["reconcile_partition", "claim_partition"])
async def test_late_comparison_or_claim_is_refused(
    tmp_path: Path, crawl_name: str, redis_url: str, script: str
) -> None:
    """What was held when it was sent is not what is held now."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        losing = LostReplies(node.parts.crawl.client, once(script), is_late=True)
        again = (
            node.ownership.reclaim_all if script == "claim_partition" else node.ownership.reconciliation.settle_doubts
        )
        node.parts.crawl.client.in_doubt.add(0)
        with pytest.raises(TransientStoreError):
            await again()
        node.parts.crawl.client.in_doubt.add(0)
        await again()
        await node.pump.turn()
        before = await node.parts.crawl.client.command("HGETALL", mine.keys.taken)
        owner = await node.parts.crawl.client.command("HGETALL", mine.keys.owner)
        await losing.deliver()
        assert await node.parts.crawl.client.command("HGETALL", mine.keys.taken) == before
        assert await node.parts.crawl.client.command("HGETALL", mine.keys.owner) == owner
        assert len(node.handout.held) == 1


@awaited
async def test_late_publication_does_not_bring_old_counts_back(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The last word of an owner on what waits is its newest."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        mine.schedule.waiting = 77
        losing = LostReplies(node.parts.crawl.client, once("trim_partition"), is_late=True)
        with pytest.raises(TransientStoreError):
            await node.parts.crawl.client.run([mine.publish()])
        mine.schedule.waiting = 0
        await node.pump.turn()
        await node.fold.turn()
        [refused] = await losing.deliver()
        assert isinstance(refused, StaleCallError)
        assert await node.parts.crawl.client.command("HGET", mine.keys.state, "waiting") == b"0"


@awaited
async def test_late_renewal_makes_no_lease_shorter(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A look that arrives after a later one leaves the lease as that one said."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        now_ms = node.parts.crawl.client.now_ms()
        for sent_ms in (now_ms, now_ms - 25_000):
            await node.parts.crawl.client.run([scripts.look_partition(mine.keys, mine.identity, 30_000, sent_ms)])
        assert int(await node.parts.crawl.client.command("HGET", mine.keys.owner, "lease_ms")) >= now_ms + 30_000


@awaited
async def test_own_call_under_way_is_made_again_and_loses_no_partition(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A step's admission and publication meet a comparison: what they say is said once more."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, PAGES[0])
        settle = node.ownership.reconciliation.settle_doubts
        table = node.ownership.table
        run = table.run
        calls: list[Any] = []

        async def meanwhile(batch: list[Any]) -> None:
            if not calls and any(call.name == "admit_urls" for _, call in batch):
                calls.extend(batch)
                node.parts.crawl.client.in_doubt.add(0)
                await settle()
            await run(batch)

        table.run = meanwhile  # type: ignore[method-assign,assignment]
        for url in queued(*PAGES[1:]):
            node.offer(url)
        await node.pump.flush()
        node.fold.record_inboxes()
        w.clock.advance(5_000)
        with pytest.raises(StaleCallError):
            await node.fold.turn()
        await w.turn(node, 2)
        assert calls
        assert node.ownership.owned[0] is mine
        assert mine.hot.by_host == await hot_in_redis(node, mine) == {HOST: 6}
        folded = await node.parts.crawl.client.command("HGET", mine.keys.state, "folded_urls")
        assert int(folded) == len(PAGES)


@awaited
async def test_doubt_concerns_its_partition_and_makes_no_host_wait(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Nothing is forgotten of any fetch: hosts are due when they were, and other partitions are not looked at."""
    async with world(tmp_path, crawl_name, redis_url, partitions=4, host_delay=60) as w:
        node = await w.joined()
        for url in queued(*(f"http://h{i}.example/" for i in range(40))):
            node.offer(url)
        await w.turn(node, 1)
        before = {p: mine.identity.generation for p, mine in node.ownership.owned.items()}
        due = [
            await node.parts.crawl.client.command("ZRANGE", m.keys.ready, 0, -1, "WITHSCORES")
            for m in node.ownership.owned.values()
        ]
        mine = node.ownership.owned[0]
        LostReplies(node.parts.crawl.client, once("trim_partition"))
        with pytest.raises(TransientStoreError):
            await node.parts.crawl.client.run([mine.publish()])
        await node.ownership.reconciliation.settle_doubts()
        after = {p: mine.identity.generation for p, mine in node.ownership.owned.items()}
        assert [p for p in after if after[p] != before[p]] == [0]
        assert due == [
            await node.parts.crawl.client.command("ZRANGE", m.keys.ready, 0, -1, "WITHSCORES")
            for m in node.ownership.owned.values()
        ]


@awaited
@pytest.mark.parametrize("has_forgotten", [False, True], ids=["lost reply", "forgotten"])
async def test_much_is_compared_in_portions(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, has_forgotten: bool
) -> None:
    """Held, ended and resting are told a few at a time; afterwards both sides are the same."""
    monkeypatch.setattr(reconciliation, "PORTION_BYTES", 200)
    portions: list[scripts.Call[scripts.ReconcileReply]] = []

    def noted(*args: Any, **kinds: Any) -> scripts.Call[scripts.ReconcileReply]:
        portions.append(reconcile_partition(*args, **kinds))
        return portions[-1]

    reconcile_partition = scripts.reconcile_partition
    monkeypatch.setattr(scripts, "reconcile_partition", noted)
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *(f"http://h{i}.example/" for i in range(12)))
        started = await w.take(node, 3)
        for held in started[:4]:
            w.end(node, held)
        await w.turn(node, 1)
        for held in started[4:6]:
            w.end(node, held)
        LostReplies(node.parts.crawl.client, once("exchange_urls"))
        w.clock.advance(500)
        with pytest.raises(TransientStoreError):
            await node.pump.turn()
        await (node.ownership.reclaim_all() if has_forgotten else node.ownership.reconciliation.settle_doubts())
        [mine] = node.ownership.owned.values()
        taken = {int(seq) for seq in await node.parts.crawl.client.command("HKEYS", mine.keys.taken)}
        assert taken == {held.seq for held in node.handout.held}
        assert len(taken) == (8 if has_forgotten else 6), "what was carried out is known where nothing is forgotten"
        assert mine.hot.urls == len(taken)
        assert len(portions) >= 3
