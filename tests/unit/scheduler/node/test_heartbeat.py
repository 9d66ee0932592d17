"""What a heartbeat tells: each warning once, and what kept a node silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.scripts import NodesMade
from bigcrawl.scheduler.node.assembly import Parts
from bigcrawl.scheduler.node.node import Node
from bigcrawl.views.activity.events import events_of
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import resolve, viewed, world, world_of_one_clock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.scheduler.world import World

GAP_MS = 12_000


@awaited
async def test_start_that_is_tried_again_counts_no_warning_twice(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The first node's heartbeat told them before its start failed; the second is of the same process."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        first = w.new_node()
        engine: Any = first.parts.engine
        engine.made = lambda: NodesMade(0, 2, 1)
        await first.arrival.join()
        await first.parts.heartbeat.send()
        assert first.membership.made_by_all == (0, 2, 1)
        await first.departure.abandon()
        second = Node(Parts(w.config, w.new_client(), DnsCache(resolve, w.clock), w.clock, w.web, engine, "again"))
        w.nodes.append(second)
        await second.arrival.join()
        engine.made = lambda: NodesMade(3, 3, 1)
        await second.parts.heartbeat.send()
        assert second.membership.made_by_all == (3, 3, 1)
        await second.parts.heartbeat.send()
        assert second.membership.made_by_all == (3, 3, 1)


async def fail_to_send(w: World, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_each(_: object) -> list[Any]:
        raise TransientStoreError("Redis does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(node.parts.crawl.client, "run_each", run_each)
        with pytest.raises(TransientStoreError):
            await node.parts.heartbeat.send()


async def hang(w: World, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(node.parts.ownership.file_work, "check_for_hang", lambda: True)
        await node.beat.turn()
        await fail_to_send(w, node, monkeypatch)  # what comes later is not the cause


async def stand(w: World, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is stopped: no heartbeat is tried."""


@pytest.mark.parametrize(
    ("silence", "kind", "text"),
    [
        (fail_to_send, "redis_away", "had no answer from Redis for 12 s"),
        (hang, "disk_hung", "waited for its disk"),
        (stand, "stood_still", "its process or machine stood still"),
    ],
)
@awaited
async def test_event_says_why_a_node_was_silent(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, silence: Any, kind: str, text: str
) -> None:
    """Redis that gave no answer, a disk that hung, or a process that did not run; each is one event."""
    async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url) as w:
        node = await w.joined()
        await node.parts.heartbeat.send()
        await silence(w, node, monkeypatch)
        w.clock.advance(GAP_MS)
        for _ in range(3):
            await node.parts.heartbeat.send()
        found = [event for event in (await viewed(w.config, events_of))["events"] if event["kind"] != "began"]
        assert [event["kind"] for event in found if "node_" not in event["kind"]] == [kind]
        assert text in found[0]["text"]
