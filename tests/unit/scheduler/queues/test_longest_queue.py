"""The host with the most URLs that wait, which bounds the end of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import encode_batch
from tests.unit.scheduler.world import queued

if TYPE_CHECKING:
    from pathlib import Path


def test_hot_and_parked_urls_of_a_host_count_together(tmp_path: Path) -> None:
    """The longest queue may be parked, hot, or both; a host that is not waited for is left out."""
    disk = Partition.open(tmp_path / "p", 1, PartitionLimits(4))
    assert disk.state.parked.longest({}) == ("", 0)
    assert disk.state.parked.longest({"hot.example": 3}) == ("hot.example", 3)
    urls = [f"http://{host}.example/{at}" for host, count in (("a", 40), ("b", 10)) for at in range(count)]
    step = disk.step([("1-0", encode_batch(queued(*urls)))], 100, {})
    assert step.batch is not None
    hot: dict[str, int] = {}
    for url in step.batch.urls:
        hot[url.host] = hot.get(url.host, 0) + 1
    assert 0 < hot["a.example"] < 40, "the others are parked"
    assert disk.state.parked.longest(hot) == ("a.example", 40)
    assert disk.state.parked.longest(hot, {"a.example"}) == ("b.example", 10)
    assert disk.state.parked.longest({**hot, "c.example": 41}) == ("c.example", 41)
