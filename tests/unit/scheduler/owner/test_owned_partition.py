"""A partition as its owner drives it: when it steps, what it tells Redis, and what opening brings in line."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.config import read_config
from bigcrawl.features.revisits.fold import Revisits
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.scripts import GrantedClaim, Identity
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import PERIODIC
from bigcrawl.revisiting.visit import Answer, Visit, next_visit
from bigcrawl.scheduler.owner.claiming.bring_up import bring_up, inbox_polls
from bigcrawl.scheduler.owner.durability import Durability
from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS, DueHeap
from bigcrawl.scheduler.owner.hot.hot_set import AwayHosts, HotSet, InRedis, pack_keys, unpack_keys
from bigcrawl.scheduler.owner.inbox import InboxReader
from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
from bigcrawl.scheduler.owner.step_schedule import StepSchedule
from bigcrawl.scheduler.partition.directory import last_epoch
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.inbox_entry import OUTCOMES, TIMED
from bigcrawl.scheduler.records.outcomes import pack_outcome
from bigcrawl.scheduler.records.queued_url import QueuedUrl, TimedUrl, encode_batch, encode_timed
from tests.support.running.tables import each
from tests.unit.scheduler.world import connected, queued

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient

HOT = 64
DEFAULTS = read_config({})
LOSS_MS = 60_000
CONFIG = DEFAULTS.replace(
    frontier=DEFAULTS.frontier.replace(hot_urls=HOT * DEFAULTS.crawl.partitions, redis_loss_ms=LOSS_MS)
)
_generations = itertools.count(1)


class Owner:
    """One owner of partition 0, and the owners that come after it."""

    def __init__(self, directory: Path, crawl: str, client: RedisClient) -> None:
        self.directory = directory
        self.client = client
        self.keys = PartitionKeys(crawl, 0)
        self.batches = 0

    async def claim(self) -> GrantedClaim:
        call = scripts.claim_partition(
            self.keys,
            node="n",
            token="",
            lease_ms=60_000,
            epoch_min=last_epoch(self.directory),
            dead_token="",
            deadline_ms=0,
            abort_ms=0,
            forgotten_ms=0,
            delay_ms=0,
            generation=next(_generations),
        )
        [claim] = await self.client.run([call])
        assert isinstance(claim, GrantedClaim)
        return claim

    async def open(self, host_hot_max: int = HOT) -> OwnedPartition:
        claim = await self.claim()
        disk = Partition.open(
            self.directory,
            claim.epoch,
            PartitionLimits(host_hot_max=host_hot_max, features=(Revisits.of_config(read_config({})),)),
        )
        identity = Identity("n", claim.epoch, claim.generation)
        in_redis = await bring_up(
            self.client, inbox_polls(self.client), self.keys, identity, disk, claim, connections=1
        )
        return OwnedPartition(
            CONFIG,
            self.keys,
            identity,
            disk,
            DueHeap(),
            in_redis,
            Durability(disk.committed, LOSS_MS, 0),
        )

    async def send(self, *urls: QueuedUrl) -> None:
        self.batches += 1
        session, number = self.batches, 1  # whatever Redis remembers of the one before
        await self.client.run([scripts.append_batch(self.keys, "n", session, number, encode_batch(urls), len(urls))])

    async def fold(self, mine: OwnedPartition, entries_max: int = 256, now_s: int = 0) -> list[scripts.Call[Any]]:
        """One step, committed and not yet told."""
        [reply] = await self.client.commands([mine.inbox.command(mine.disk.manifest.inbox_id, entries_max)])
        inbox = mine.inbox.parse(reply)
        step = mine.fold(inbox, mine.hot.room, dict(mine.hot.by_host), now_s=now_s)
        return mine.after_step(step, len(inbox), now_ms=0)

    async def step(self, mine: OwnedPartition) -> None:
        await self.client.run(await self.fold(mine))
        mine.record_admitted(now_ms=0)

    async def queued(self) -> int:
        [view] = await self.client.run([scripts.look_partition(self.keys)])
        return view.count("hot")


@asynccontextmanager
async def owner(tmp_path: Path, crawl: str, redis_url: str) -> AsyncIterator[Owner]:
    async with connected(redis_url) as client:
        yield Owner(tmp_path, crawl, client)


def urls_of(host: str, count: int) -> list[QueuedUrl]:
    return queued(*(f"http://{host}/{i}" for i in range(count)))


def test_step_admits_what_the_inbox_brings_and_says_so(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Inbox in, admit batch out, counts published; then nothing is left to do."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            assert not mine.schedule.wants_step(now_ms=0, step_ms=0), "its inbox has never had an entry"
            await o.send(*urls_of("a.example", 3), *urls_of("a.example", 3))
            mine = await o.open()
            is_due = mine.schedule.wants_step(now_ms=0, step_ms=0)
            assert is_due, "what waits in the inbox of a partition just won is unknown"
            await o.step(mine)
            [view] = await o.client.run([scripts.look_partition(o.keys)])
            counts = {name: view.count(name) for name in ("hot", "seen", "duplicates", "folded_urls", "waiting")}
            assert counts == {"hot": 3, "seen": 3, "duplicates": 3, "folded_urls": 6, "waiting": 0}
            assert mine.hot.by_host == {"a.example": 3}
            assert not mine.schedule.wants_step(now_ms=10_000, step_ms=0)

    asyncio.run(scenario())


def test_committed_batch_that_redis_never_got_is_admitted_by_the_next_owner(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Killed between commit and admission: nothing is lost, nothing comes twice."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await o.send(*urls_of("a.example", 5))
            calls = await o.fold(mine)
            assert calls
            assert await o.queued() == 0
            again = await o.open()
            assert await o.queued() == 5
            assert again.hot.by_host == {"a.example": 5}
            await o.open()
            assert await o.queued() == 5

    asyncio.run(scenario())


def test_manifest_behind_redis_does_not_admit_twice(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An older copy of the directory: what Redis admitted since is folded as admitted."""

    async def scenario() -> None:
        async with owner(tmp_path / "p", crawl_name, redis_url) as o:
            mine = await o.open()
            mine.durability.make_durable(0, 0)
            await o.send(*urls_of("a.example", 5))
            await o.step(mine)
            for file in (tmp_path / "p").rglob("*"):
                if file.is_file():
                    file.unlink()
            fresh = await o.open()
            assert fresh.disk.manifest.batch_number == 1
            fresh.inbox.record_urls()
            await o.step(fresh)
            assert await o.queued() == 5

    asyncio.run(scenario())


def test_files_older_than_all_that_redis_remembers_cost_repeats_and_are_told(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A manifest behind Redis whose difference is not known: numbers go on above, and the partition works."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            await o.open()
            await o.client.command("HSET", o.keys.state, "admitted", "3")
            mine = await o.open()
            assert "up to 3000 URLs are fetched again" in caplog.text
            await o.send(*urls_of("a.example", 5))
            await o.step(mine)
            assert (mine.disk.manifest.batch_number, await o.queued()) == (4, 5)
            assert mine.disk.manifest.admitted >= 3_005

    asyncio.run(scenario())


async def rewound(o: Owner) -> None:
    """A Redis that has forgotten all of the partition but who owned it."""
    owner_, keys = (
        await o.client.command("HGETALL", o.keys.owner),
        await o.client.command("KEYS", o.keys.owner[:-5] + "*"),
    )
    await o.client.command("DEL", *keys)
    await o.client.command("HSET", o.keys.owner, *owner_)


async def aged(o: Owner, mine: OwnedPartition, monkeypatch: pytest.MonkeyPatch, *rounds_ms: int) -> None:
    """Durable points at these times, each behind a step, in logs that are begun anew each time."""
    monkeypatch.setattr("bigcrawl.scheduler.partition.manifest_log.LOG_BYTES_MAX", 0)
    for at, now_ms in enumerate(rounds_ms):
        await o.send(*urls_of(f"h{at}.example", 4))
        await o.step(mine)
        mine.disk.committed._log._first_bytes = 0
        mine.durability.make_durable(now_ms, now_ms)
        await o.client.run([mine.publish()])


async def state_of(o: Owner, field: str) -> int:
    return int(await o.client.command("HGET", o.keys.state, field) or 0)


def test_redis_that_forgot_no_more_than_is_kept_gets_all_again(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it lost of the last BIGCRAWL_REDIS_LOSS_SECONDS is offered again, but for what has ended."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await aged(o, mine, monkeypatch, 0, 10_000, 20_000, 30_000, 40_000, 50_000)
            outcome = pack_outcome(urls_of("h1.example", 1)[0].key, "status:200", 0)
            await o.client.command("XADD", o.keys.inbox, "*", "o", outcome)
            await o.step(mine)
            await rewound(o)
            again = await o.open()
            assert await o.queued() == 6 * 4 - 1
            assert again.hot.by_host == {"h0.example": 4, "h1.example": 3} | {f"h{i}.example": 4 for i in range(2, 6)}
            assert (await state_of(o, "readmitted"), await state_of(o, "lost")) == (23, 0)
            await o.send(*urls_of("late.example", 3))
            await o.step(again)
            assert await o.queued() == 6 * 4 - 1 + 3

    asyncio.run(scenario())


@pytest.mark.parametrize(("visits", "offered"), [(1, 1), (2, 0)], ids=["due", "visited since"])
def test_visit_is_offered_again_though_its_page_has_ended_before(
    tmp_path: Path, crawl_name: str, redis_url: str, visits: int, offered: int
) -> None:
    """An owner that dies between the commit and the admission of a visit does not end the page's visits."""
    [page] = urls_of("a.example", 1)
    policy = RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000))

    async def ended(o: Owner, visit: Visit | None) -> Visit:
        after = next_visit(visit, Answer(200, b"digest"), visit.due_s if visit else 0, policy)
        assert after is not None
        again = page._replace(body=with_known(page.body, after.pack()))
        revisit = encode_timed([TimedUrl(after.due_s, after.number, again)])
        await o.client.command(
            "XADD", o.keys.inbox, "*", OUTCOMES, pack_outcome(page.key, "status:200", 0), TIMED, revisit
        )
        return after

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await o.send(page)
            await o.step(mine)
            visit = await ended(o, None)
            await o.step(mine)
            admitted = await o.fold(mine, now_s=visit.due_s + 2)
            assert mine.disk.manifest.batch_number == 2
            if visits == 2:  # Redis forgets the admission, not the end
                await o.client.run(admitted)
                await ended(o, visit)
                await o.step(mine)
                await o.client.command("HSET", o.keys.state, "admitted", 1, "hot", 0)
            await o.client.command("DEL", o.keys.back + "a.example", o.keys.ready)
            again = await o.open()
            assert again.hot.by_host == ({"a.example": 1} if offered else {})
            assert await state_of(o, "readmitted") == offered

    asyncio.run(scenario())


def test_redis_that_forgot_more_than_is_kept_goes_on_and_forgotten_urls_are_new_again(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is gone is said and counted; whoever links to it brings it back; what is kept comes back by itself."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await aged(o, mine, monkeypatch, 0, 20_000, 90_000, 100_000, 110_000)
            await rewound(o)
            again = await o.open()
            assert (await state_of(o, "readmitted"), await state_of(o, "lost")) == (12, 8)
            assert "0 older batches and 8 others" in caplog.text
            assert await o.queued() == 12
            await o.step(again)
            await o.send(*urls_of("h0.example", 4), *urls_of("h2.example", 4))
            await o.step(again)
            assert await o.queued() == 12 + 4, "h0 is new again, h2 is not"
            last = await o.open()
            assert (last.disk.manifest.batch_number, await o.queued()) == (6, 16)

    asyncio.run(scenario())


def test_redis_that_forgot_what_nobody_remembers_goes_on(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten times beyond what is kept not even keys are left: the crawl goes on with what there is."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await aged(o, mine, monkeypatch, 0, 700_000, 710_000, 720_000)
            await rewound(o)
            again = await o.open()
            assert "the URLs of 1 older batches" in caplog.text
            assert await o.queued() == 12
            assert again.admissions.confirmed == 4

    asyncio.run(scenario())


def test_inbox_is_trimmed_only_behind_the_durable_point_before(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Entries leave Redis one durable round late, when what they admitted has been persisted there."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await o.send(*urls_of("a.example", 3))
            await o.step(mine)
            lengths = []
            for now_ms in (0, 10_000, 20_000):
                mine.durability.make_durable(now_ms, now_ms)
                await o.client.run([mine.publish()])
                lengths.append(await o.client.command("XLEN", o.keys.inbox))
            assert lengths == [1, 0, 0]
            assert mine.durability.due_ms(durable_ms=10_000) == NEVER_MS

    asyncio.run(scenario())


def test_partition_of_full_hosts_does_not_step_until_one_has_room(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """URLs wait on disk for full hosts only: no step, and no word to Redis, before one of them has ended."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            await o.send(*urls_of("a.example", 9))
            mine = await o.open(host_hot_max=2)
            while mine.schedule.wants_step(now_ms=0, step_ms=0):
                calls = await o.fold(mine)
                await o.client.run(calls)
            assert calls == []
            assert (mine.disk.state.waiting, mine.hot.urls) == (7, 2)
            mine.hot.record_ended("a.example")
            assert mine.schedule.wants_step(now_ms=0, step_ms=0)
            mine.inbox.has_urls = False
            await o.step(mine)
            assert mine.disk.state.waiting == 6

    asyncio.run(scenario())


def test_inbox_longer_than_a_step_is_read_on(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A step reads no more than it was allowed to, and asks for the rest."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            for url in urls_of("a.example", 5):
                await o.send(url)
            mine = await o.open()
            seen = []
            while mine.inbox.has_urls:
                await o.client.run(await o.fold(mine, entries_max=2))
                seen.append(len(mine.disk.state.tables.seen))
            assert seen == [2, 4, 5]

    asyncio.run(scenario())


def test_inbox_noticed_during_a_step_that_did_not_read_stays_noticed(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A step that only refills hosts says nothing about the inbox."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await o.step(mine)
            step = mine.fold([], mine.hot.room, {})
            mine.inbox.record_urls()
            mine.after_step(step, 0, 0)
            assert mine.inbox.has_urls

    asyncio.run(scenario())


def test_hot_urls_bound_the_room(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """No more is admitted than the partition's share of the hot set; ended URLs make room."""

    async def scenario() -> None:
        async with owner(tmp_path, crawl_name, redis_url) as o:
            mine = await o.open()
            await o.send(*(url for i in range(10) for url in urls_of(f"h{i}.example", 10)))
            await o.step(mine)
            while mine.hot.room and mine.disk.state.waiting:
                mine.inbox.record_urls()
                await o.step(mine)
            assert (mine.hot.urls, mine.hot.room, mine.disk.state.waiting) == (HOT, 0, 36)
            mine.hot.record_ended("h0.example")
            mine.hot.record_ended("nobody.example")
            assert mine.hot.room == 1

    asyncio.run(scenario())


def test_keys_survive_packing() -> None:
    """Eight bytes a key, little-endian, whatever the key."""
    keys = [0, 1, 1 << 63, (1 << 64) - 1]
    assert unpack_keys(pack_keys(keys)) == keys
    assert unpack_keys(b"") == []


@each(
    "state, rest_ms",
    [
        ({"has_urls": True, "urls": HOT}, 30_000),
        ({"has_urls": True, "urls": HOT // 2 + 1}, 30_000),
        ({"has_urls": True, "urls": HOT // 2}, 1_000),
        ({"has_urls": True, "urls": HOT, "unfolded_urls": 499}, 30_000),
        ({"has_urls": True, "urls": HOT, "unfolded_urls": 500}, 1_000),
        ({"has_urls": True, "urls": HOT // 8 - 1}, 1_000),
        ({"has_urls": True, "urls": HOT // 8 - 1, "starved": True}, 20),
        ({"has_urls": True, "urls": HOT // 8, "starved": True}, 1_000),
        ({"has_urls": True, "urls": HOT, "starved": True}, 30_000),
        ({"has_urls": True, "urls": 0, "starved": True, "extra_divisor": 16, "_has_only_extra": True}, 20),
        ({"has_urls": True, "urls": 1, "starved": True, "extra_divisor": 16, "_has_only_extra": True}, 1_000),
        ({"waiting": 1, "urls": HOT // 2}, 1_000),
        ({"waiting": 1, "urls": 0, "starved": True}, 20),
        ({"waiting": 1, "urls": HOT // 2, "lasting_ms": 999}, 20),
        ({"waiting": 1, "urls": HOT // 2, "lasting_ms": 1_000}, 1_000),
        ({"has_urls": True, "urls": HOT // 2 + 1, "lasting_ms": 0}, 30_000),
        ({"waiting": 1, "urls": 5, "_stalled_at": 5, "lasting_ms": 0}, None),
        ({"waiting": 1, "urls": 5, "_stalled_at": 6}, 1_000),
        ({"has_urls": True, "urls": 5, "_stalled_at": 5}, 1_000),
        ({"waiting": 1, "urls": 5, "_stalled_at": 5}, None),
        ({"waiting": 1, "urls": HOT // 2 + 1}, None),
        ({"waiting": 0, "urls": 0, "starved": True}, None),
        ({"has_urls": True, "urls": 0, "starved": True, "step_ms": 5}, 5),
        ({"has_urls": True, "urls": HOT // 2, "step_ms": 500}, 500),
        ({"waiting": 1, "urls": HOT // 2, "extra_divisor": 4}, 1_000),
        ({"waiting": 1, "urls": HOT // 8 + 1, "extra_divisor": 4, "_has_only_extra": True}, None),
        ({"waiting": 1, "urls": HOT // 8, "extra_divisor": 4, "_has_only_extra": True}, 1_000),
        ({"has_urls": True, "urls": HOT // 8, "extra_divisor": 2, "_has_only_extra": True}, 1_000),
        ({"has_urls": True, "urls": HOT // 2, "extra_divisor": 2, "_has_only_extra": True}, 2_000),
        ({"has_urls": True, "urls": HOT // 2 + 1, "extra_divisor": 2, "_has_only_extra": True}, 30_000),
    ],
)
def test_steps_rest_by_how_much_they_would_bring(state: dict[str, Any], rest_ms: int | None) -> None:
    """Keys gather while the hot set is well filled, a second when it runs low, hardly when the node starves."""
    inbox, hot = InboxReader("inbox"), HotSet(HOT, AwayHosts())
    inbox.has_urls = False
    schedule = StepSchedule(inbox, hot)
    schedule.record_use(0)  # what was used before the last step says nothing
    schedule.record_step(7_000)
    schedule.record_use(state.pop("lasting_ms", 1_000))
    options = {"step_ms": state.pop("step_ms", 30_000), "starved": state.pop("starved", False)}
    for name, value in state.items():
        [piece] = [piece for piece in (inbox, hot, schedule) if hasattr(piece, name)]
        setattr(piece, name, value)
    asked = range(7_000, 7_000 + 30_001)
    due = [
        now_ms
        for now_ms in (*asked[:1_002], *asked[1_999:2_001], *asked[-2:])
        if schedule.wants_step(now_ms, **options)
    ]
    assert due[:1] == ([] if rest_ms is None else [7_000 + rest_ms])


def test_more_room_for_extra_urls_ends_a_stall(tmp_path: Path) -> None:
    """What a step found nothing to do with may have room now; not when there is less of it."""
    disk = Partition.open(tmp_path, 1, PartitionLimits(host_hot_max=HOT))
    mine = OwnedPartition(
        CONFIG,
        PartitionKeys("crawl", 0),
        Identity("n", 1),
        disk,
        DueHeap(),
        InRedis({"h": 5}),
        Durability(disk.committed, LOSS_MS, 0),
    )
    mine.schedule.record_fold(5, is_vain=True)
    assert (mine.hot.room, mine.hot.extra_room) == (HOT - 5, HOT - 5)
    mine.set_extra_limit(4)
    assert (mine.hot.room, mine.hot.extra_room, mine.schedule.is_stalled) == (HOT - 5, HOT // 4 - 5, True)
    mine.set_extra_limit(2)
    assert mine.hot.extra_room == HOT // 2 - 5
    assert not mine.schedule.is_stalled
