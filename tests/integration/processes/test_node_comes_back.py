"""A node that is started again under its name."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.keys import PartitionKeys
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS, SHARES = 64, [21, 21, 22]
SETTINGS = {"BIGCRAWL_PARTITIONS": PARTITIONS, "BIGCRAWL_CLOSE": "forever", "BIGCRAWL_HOST_DELAY": 0}


def partitions_by_node(server: PrivateRedis, crawl: str) -> dict[str, set[int]]:
    """What each node owns once all is owned in thirds, by its name: that of its id without the random end.

    A node that had to wait for a core may have to claim a partition again, which is nobody's meanwhile.
    """
    owned: defaultdict[str, set[int]] = defaultdict(set)

    def is_in_thirds() -> bool:
        owned.clear()
        for partition in range(PARTITIONS):
            node = server.client.hget(PartitionKeys(crawl, partition).owner, "node")
            if isinstance(node, bytes):
                owned[node.decode().rpartition("-")[0]].add(partition)
        return sorted(map(len, owned.values())) == SHARES

    wait_until(is_in_thirds, "each node owns a third")
    return owned


@pytest.mark.long("two nodes, one of which comes back: tests/unit/scheduler/crawl/test_membership.py")
def test_node_that_was_killed_gets_most_of_its_partitions_back(tmp_path: Path) -> None:
    """Others own them meanwhile. Had chance decided, it would get a third of them."""
    with no_strays_below(tmp_path), PrivateRedis() as server, SimulatedWeb(tmp_path / "web", hosts=4, pages=5) as web:
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": server.url}
        with (
            Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_NODE": "a"}) as first,
            second_process_of(first) as second,
            second_process_of(first, "third") as third,
        ):
            second.settings["BIGCRAWL_NODE"], third.settings["BIGCRAWL_NODE"] = "b", "c"
            first.start()
            wait_until(lambda: len(web.exchanges()) > 0, "the crawl has begun")
            second.start()
            third.start()
            before = partitions_by_node(server, first.name)
            second.kill()
            wait_until(lambda: shares(first) == [32, 32], "the others own all")
            second.start()
            after = partitions_by_node(server, first.name)
    assert before.keys() == after.keys() == {"a", "b", "c"}
    assert len(before["b"] & after["b"]) > len(before["b"]) * 3 / 4, (before, after)
