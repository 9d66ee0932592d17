"""When files are forced to the disk, and for how long admit batches are kept there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.durability import FOLDED_URLS_MAX, PERSISTED_MS, BatchRetention, Durability
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import encode_batch
from tests.unit.scheduler.world import queued

if TYPE_CHECKING:
    from pathlib import Path

DURABLE_MS = 10_000


def test_files_are_forced_in_time_and_sooner_when_much_was_folded(tmp_path: Path) -> None:
    """Nothing is due where nothing has changed; Redis must not hold much of an inbox."""
    disk = Partition.open(tmp_path / "p", 1, PartitionLimits())
    durability = Durability(disk.committed, loss_ms=0, now_ms=1_000)
    assert durability.due_ms(DURABLE_MS) > 1_000 + DURABLE_MS - 1
    assert durability.due_ms(DURABLE_MS) <= 1_000 + DURABLE_MS
    durability.make_durable(20_000, 20_000)
    assert durability.forced_ms == 20_000
    assert durability.due_ms(DURABLE_MS) > 90_000
    disk.step([("1-0", encode_batch(queued(*(f"http://a.example/{i}" for i in range(FOLDED_URLS_MAX)))))], 0, {})
    assert durability.due_ms(DURABLE_MS) > 20_000 + PERSISTED_MS - 1
    assert durability.due_ms(DURABLE_MS) <= 20_000 + PERSISTED_MS


def test_trimming_is_owed_until_a_later_point(tmp_path: Path) -> None:
    """What was durable at the point before may go; a point without changes tells that of the last one."""
    disk = Partition.open(tmp_path / "p", 1, PartitionLimits())
    durability = Durability(disk.committed, loss_ms=0, now_ms=0)
    disk.step([("1-0", encode_batch(queued("http://a.example/")))], 1, {})
    durability.make_durable(0, 0)
    assert durability.trim == ("0-0", 0)
    assert durability.due_ms(DURABLE_MS) <= DURABLE_MS
    durability.make_durable(DURABLE_MS, DURABLE_MS)
    assert durability.trim == ("1-0", 1)
    assert durability.due_ms(DURABLE_MS) > 5 * DURABLE_MS


def test_order_for_a_checkpoint_is_carried_out_once(tmp_path: Path) -> None:
    """Whether anything is new or not, and not sooner than Redis has persisted what is trimmed then."""
    disk = Partition.open(tmp_path / "p", 1, PartitionLimits())
    durability = Durability(disk.committed, loss_ms=0, now_ms=0)
    assert durability.due_ms(DURABLE_MS, checkpoint=7) > PERSISTED_MS - 1
    assert durability.due_ms(DURABLE_MS, checkpoint=7) <= PERSISTED_MS
    durability.make_durable(PERSISTED_MS, PERSISTED_MS, 7)
    assert durability.checkpoint == 7
    assert durability.due_ms(DURABLE_MS, checkpoint=7) > 5 * DURABLE_MS
    assert durability.due_ms(DURABLE_MS, checkpoint=8) <= 5 * DURABLE_MS


def test_batches_are_kept_until_redis_will_not_forget_them() -> None:
    """Their text for as long as Redis may lose, their keys ten times as long; marks are few."""
    retention = BatchRetention(60_000)
    for number, now_ms in enumerate(range(0, 1_200_000, 1_000)):
        retention.record_batch(now_ms, number)
    assert len(retention._marks) < 50
    now_ms = 1_200_000
    assert 1_100 < retention.text_upto(now_ms) <= 1_140
    assert 550 < retention.keys_upto(now_ms) <= 600
