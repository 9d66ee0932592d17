"""What a node counts of failures, and that no fault of Redis makes it grow, wait or raise more than it must."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.scheduler.node.failed_fetches import OTHERS, WAITING_MAX, FailedFetches
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path


class Client:
    """Takes calls, or refuses them."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.error: Exception | None = None

    async def run(self, calls: list[Any]) -> None:
        if self.error is not None:
            raise self.error
        self.sent += [tuple(call.args[2:]) for call in calls]


def failing(host: str, counter: str, robots: str = "", report: str = "") -> Any:
    return SimpleNamespace(
        host=host,
        url=f"http://{host}/page",
        end=EndedUrl(1, 0, b"", counter, 0),
        robots_failure=robots,
        host_report=report,
    )


def made() -> tuple[FailedFetches, Client]:
    client = Client()
    clock: Any = SimpleNamespace(monotonic_ms=lambda: 10_000)
    return FailedFetches(client, clock, "test", lambda host: host.removeprefix("www.")), client  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (failing("a.example", "status:404"), "status:404"),
        (failing("a.example", "status:503"), "status:503"),
        (failing("a.example", "retried:error:timeout"), "error:timeout"),
        (failing("a.example", "dropped:forbidden"), "dropped:forbidden"),
        (failing("a.example", "robots", robots="error:refused", report="robots"), "robots.txt error:refused"),
        (failing("a.example", "", report="error:dns"), "error:dns"),
        (failing("a.example", "status:200"), None),
        (failing("a.example", "status:301"), None),
        (failing("a.example", "robots", report="+"), None),
        (failing("a.example", "put_off"), None),
    ],
)
def test_what_counts_as_a_failure(held: Any, reason: str | None) -> None:
    failed, client = made()
    failed.note(held)
    asyncio.run(failed.send())
    assert client.sent == ([] if reason is None else [(f"{reason}\na.example", 1, "http://a.example/page")])


def test_rows_are_bounded_and_nothing_is_lost_while_redis_is_away() -> None:
    failed, client = made()
    client.error = TransientStoreError("away")
    for number in range(WAITING_MAX + 100):
        failed.note(failing(f"{number}.example", "error:dns"))
    failed.note(failing("www.0.example", "error:dns"))
    with pytest.raises(TransientStoreError):
        asyncio.run(failed.send())
    failed.note(failing("1.example", "error:dns"))
    client.error = None
    asyncio.run(failed.send_if_due())
    [words] = client.sent
    counts = dict(zip(words[::3], words[1::3], strict=True))
    assert len(counts) <= WAITING_MAX + 1
    assert sum(counts.values()) >= WAITING_MAX + 2
    assert counts["error:dns\n0.example"] == counts["error:dns\n1.example"] == 2
    assert OTHERS in {name.partition("\n")[2] for name in counts} or len(counts) == WAITING_MAX


def test_a_full_redis_drops_counts_and_troubles_nobody() -> None:
    failed, client = made()
    failed.note(failing("a.example", "error:dns"))
    client.error = RedisRefusedError("OOM command not allowed")
    asyncio.run(failed.send())
    client.error = None
    asyncio.run(failed.send())
    assert client.sent == []


def test_a_node_sends_what_failed(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """By the watch every few seconds, and when the node leaves."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            node = await w.joined()
            for url in queued("http://www.a.example/1", "http://a.example/2"):
                node.offer(url)
            for number, held in enumerate(await w.take(node, 12)):
                w.end(node, held, f"status:{404 + number}")
            await w.turn(node, 14)
            rows = await w.client.command("ZRANGE", CrawlKeys(crawl_name).errors, 0, -1)
            assert sorted(rows) == [b"status:404\na.example", b"status:405\na.example"]

    asyncio.run(scenario())
