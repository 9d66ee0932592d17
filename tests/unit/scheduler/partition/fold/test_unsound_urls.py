"""URLs in an inbox that no node has sent: they stop nobody, and are kept until somebody decides about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.budgets.allowances import EffectiveBudgets
from bigcrawl.scheduler.budgets.policies import UnlimitedBudgets
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.body import address_or_none
from bigcrawl.scheduler.records.queued_url import QueuedUrl, decode_batch, encode_batch
from bigcrawl.scheduler.rules.blacklist import Blacklist
from bigcrawl.scheduler.rules.budget_rules import RuleBook, parse_rules
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import make_url, pld_of

if TYPE_CHECKING:
    from pathlib import Path

SOUND = [make_url(number, "a.example") for number in range(3)]
UNSOUND = [
    make_url(7, "a.example\nb"),
    make_url(8, ""),
    make_url(9, "a.example")._replace(flags=1 << 63),
    make_url(10, "a.example")._replace(flags=-1),
    make_url(11, "a.example")._replace(priority=1 << 40),
    make_url(12, "a.example")._replace(body=b""),
]


@pytest.mark.parametrize("unsound", UNSOUND)
def test_an_unsound_url_is_kept_and_the_others_go_on(tmp_path: Path, unsound: QueuedUrl) -> None:
    """It lies with the rejected entries, which are counted, and is not taken in again by `--retry`."""
    partition = Partition.open(tmp_path / "p0000", 1, PartitionLimits())
    step = partition.step([("1-0", encode_batch([SOUND[0], unsound, *SOUND[1:]]))], 10, {})
    assert step.batch is not None
    assert step.batch.urls == SOUND
    assert (step.rejected, partition.set_aside) == (1, 1)
    [entry] = rejected_entries(tmp_path)
    assert decode_batch(entry.path.read_bytes()) == [unsound]
    assert "out of range" in entry.problem


def test_a_damaged_body_stops_no_step(tmp_path: Path) -> None:
    """Rules that ask for a URL's address, or its depth, find none; the node that takes the URL decides."""
    book = RuleBook(parse_rules({"re:/deep": {"budget": 0}, "example": {"depth": 3}}), pld_of, pld_key)
    budgets = EffectiveBudgets(UnlimitedBudgets(), book, address_or_none)
    partition = Partition.open(tmp_path / "p0000", 1, PartitionLimits(), budgets=budgets, pld_of=pld_of)
    partition.sources.set_withholds(Blacklist(["re:/never"], pld_of).withholds)
    urls = [make_url(1, "a.example")._replace(body=body) for body in (b"\xc1", b"\x07", b"\x93\x01\x02\x03", b"\x90")]
    step = partition.step([("1-0", encode_batch([url._replace(key=at) for at, url in enumerate(urls)]))], 10, {})
    assert step.batch is not None
    assert len(step.batch.urls) == len(urls)
