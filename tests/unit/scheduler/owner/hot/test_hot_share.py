"""How many URLs of a host are hot: few where hosts rest for long, so that there are many hosts."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.owner.hot.hot_share import PAGES, HotShare
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.scheduler.world import World


@pytest.mark.parametrize(
    ("delay_ms", "urls_max", "urls"),
    [
        *(
            (0, 25, 25),
            (1, 25, 25),
            (1_000, 25, 25),
            (1_001, 25, 25),
            (1_042, 25, 24),
            (2_000, 25, 13),
            (10_000, 25, 3),
        ),
        *((24_999, 25, 2), (25_000, 25, 1), (30_000, 25, 1), (86_400_000, 25, 1), (0, 1, 1), (1_000, 12_500, 25)),
    ],
)
def test_share_is_what_a_host_is_asked_for_in_25_seconds(delay_ms: int, urls_max: int, urls: int) -> None:
    assert HotShare(delay_ms, urls_max).urls == urls


def test_share_follows_the_rests_of_the_latest_pages() -> None:
    """Ten times the download time, a Crawl-delay: what hosts were told counts, whatever the settings say."""
    share = HotShare(1_000, 25)
    for _ in range(4 * PAGES):
        share.record_rest(30_000)
    assert share.urls == 1
    for _ in range(8 * PAGES):
        share.record_rest(0)
    assert share.urls > 20


@pytest.mark.parametrize(("host_delay", "share"), [(30, 1), (1, 25)])
def test_hosts_that_rest_long_are_many_in_redis(
    tmp_path: Path, crawl_name: str, redis_url: str, host_delay: float, share: int
) -> None:
    """200 hosts wait, the URLs of each in a row: of as many URLs in Redis, a share is each host's."""

    async def scenario() -> None:
        settings = {"partitions": 1, "hot_urls": 1_000, "budget_policy": "none", "host_delay": host_delay}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await w.joined()
            urls = [f"http://h{host}.example{host}/{page}" for host in range(200) for page in range(10)]
            for url in queued(*urls):
                node.offer(url)
            await node.pump.flush()
            node.fold.record_inboxes()
            [mine] = node.ownership.owned.values()
            for _ in range(60):
                w.clock.advance(1_000)
                await node.ownership.folding.step_due(starved=True)
            assert mine.hot.urls <= 1_000
            assert len(mine.hot.by_host) >= min(200, 1_000 // share // 2)

    asyncio.run(scenario())


@pytest.mark.parametrize(("urls_each", "least"), [(8, 6.0), (40, 4.5)])
def test_a_gentle_crawl_of_many_hosts_is_as_fast_as_its_hot_set(tmp_path: Path, urls_each: int, least: float) -> None:
    """400 hosts of a partition wait, each asked every 30 s, and 195 URLs may be hot: PolyBot's s = x / t, 6.5 a second.

    Source: PolyBot §3.5. With 25 URLs a host it was 0.8 a second, and with long sites 0.3. Time is the test's.
    """
    hot_max, delay_s, share = 195, 30, HotShare(30_000, 25)
    partition = Partition.open(tmp_path, 1, PartitionLimits(host_hot_max=200))
    partition.sources.set_host_share(share.urls)
    urls = [QueuedUrl(host * 100 + page, f"h{host}.x", 0, 0, b"x") for host in range(400) for page in range(urls_each)]
    partition.step([InboxEntry("1-1", encode_batch(urls))], 0, {})
    hot: Counter[str] = Counter()
    due_s: dict[str, int] = {}
    fetched = 0
    for now_s in range(90):
        if hot.total() <= hot_max // 2 and partition.state.waiting:
            batch = partition.step([], hot_max - hot.total(), dict(hot)).batch
            hot.update(url.host for url in batch.urls) if batch else None
        for host in [host for host in hot if due_s.get(host, 0) <= now_s]:
            due_s[host] = now_s + delay_s
            hot -= Counter([host])
            fetched += now_s >= delay_s
    assert fetched / (90 - delay_s) >= least
    assert hot.total() <= hot_max


def test_pages_tell_how_long_hosts_rest(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A page counts, a robots.txt or a URL that was given back does not."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=1) as w:
            await _fetched(w)

    asyncio.run(scenario())


async def _fetched(w: World) -> None:
    node = await w.joined()
    share = node.ownership.hot_share
    share.record_rest(1_000_000)
    before = share._rest_ms
    for url in queued("http://a.example/1", "http://b.example/1"):
        node.offer(url)
    await node.pump.flush()
    node.fold.record_inboxes()
    w.clock.advance(1_000)
    await node.ownership.folding.step_due(starved=True)
    await node.parts.exchange.run(acknowledge=True, urls_max=2)
    await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
    page, other = node.handout.held
    page.outcome = "status:200"
    node.handout.fetches.end(page)
    node.handout.give_back(other, 0)
    await node.parts.exchange.run(acknowledge=True, urls_max=0)
    assert share._rest_ms == pytest.approx(before + (1_000 - before) / PAGES, abs=1)
