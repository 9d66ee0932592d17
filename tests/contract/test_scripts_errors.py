"""The counts of failed fetches in Redis: sums over all senders, the latest example, and a bounded number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptRunner

NOW_MS = 1_700_000_000_000


def kept(runner: ScriptRunner, keys: CrawlKeys) -> dict[str, tuple[int, str]]:
    """By reason and PLD: fetches, and the example."""
    client: Any = runner.client
    counts = client.zrange(keys.errors, 0, -1, withscores=True)
    examples = {name.decode(): value.decode() for name, value in client.hgetall(keys.examples).items()}
    assert len(counts) == len(examples)
    return {row.decode(): (int(count), examples[row.decode()]) for row, count in counts}


def test_counts_add_up_and_the_last_example_stays(runner: ScriptRunner, crawl_name: str) -> None:
    keys = CrawlKeys(crawl_name)
    row = "error:timeout\na.example"
    assert runner.run(scripts.record_errors(keys, [(row, 2, "http://a.example/1")], 10, NOW_MS)) == 1
    others = [(row, 3, "http://a.example/2"), ("error:dns\nb.example", 1, "http://b.example/")]
    runner.run(scripts.record_errors(keys, others, 10, NOW_MS + 5))
    assert kept(runner, keys) == {
        row: (5, f"{NOW_MS + 5}\nhttp://a.example/2"),
        "error:dns\nb.example": (1, f"{NOW_MS + 5}\nhttp://b.example/"),
    }


def test_the_rarest_rows_go_first(runner: ScriptRunner, crawl_name: str) -> None:
    """However many pairs of reason and PLD there are, no more are kept than the sender says."""
    keys = CrawlKeys(crawl_name)
    rows = [(f"error:dns\n{number}.example", number, "http://x.example/") for number in range(1, 31)]
    runner.run(scripts.record_errors(keys, rows, 20, NOW_MS))
    assert sorted(count for count, _ in kept(runner, keys).values()) == list(range(11, 31))
