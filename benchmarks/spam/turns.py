"""Whether spam got more than its budgets: the turns that partitions had, and what each PLD was given in them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.config import read_config
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeCounts
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.crawl.crawl_record import keys_in
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory, epoch_path, list_committed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from benchmarks.spam.turn_log import TurnLine
    from bigcrawl.url.key import Keys


class Account(NamedTuple):
    """A PLD and what it got.

    Attributes:
        in_degree, budget: as they were at the end.
        turns: of its partition, in which it may have got its share.
        shares: budgets that these turns gave it: their quanta, added up.
        fetched: its pages.
    """

    pld: str
    partition: int
    in_degree: int
    budget: int
    turns: int
    shares: int
    fetched: int

    @property
    def allowed(self) -> int:
        """URLs that were let pass at most."""
        return self.budget * self.shares


def shares_of(lines: Iterable[TurnLine]) -> dict[int, tuple[int, int]]:
    """By partition: the turns it had, and their quanta added up.

    A step may have several turns, and tells of the last one: all numbers up to that count, though some may have been
    passed over. A turn counts with the largest quantum that there was until it ended: URLs may have been placed in it
    by any.
    """
    turns: dict[int, list[int]] = defaultdict(list)
    for line in sorted(lines):
        quanta = turns[line.partition]
        largest = max([line.quantum, *quanta[-1:]])
        quanta += [largest] * (line.turn + 1 - len(quanta))
        quanta[line.turn] = largest
    return {partition: (len(quanta), sum(quanta)) for partition, quanta in turns.items()}


def accounts_of(
    crawl_directory: Path, settings: Mapping[str, Any], lines: Iterable[TurnLine], fetched: Mapping[str, int]
) -> list[Account]:
    """What each PLD got, most pages first; empty for a crawl without budgets.

    Args:
        crawl_directory: `<state>/<crawl>` of a crawl that has ended.
        settings: of the crawl.
        lines: the turns of its partitions.
        fetched: pages by PLD.
    """
    config = read_config(settings)
    keys = keys_in(crawl_directory)
    in_degrees, counts = _in_degrees(crawl_directory, keys, config.crawl.partitions, fetched)
    policy = make_policy(config.budget, counts)
    if policy is None:
        return []
    plds = sorted(fetched, key=lambda pld: -fetched[pld])
    degrees = np.array([in_degrees[pld] for pld in plds], dtype=np.uint32)
    budgets = policy.budgets(_packed(keys, plds), degrees).tolist()
    shares = shares_of(lines)
    found = []
    for pld, budget in zip(plds, budgets, strict=True):
        partition = keys.partition_of(pld, config.crawl.partitions)
        found.append(Account(pld, partition, in_degrees[pld], budget, *shares.get(partition, (0, 0)), fetched[pld]))
    return found


def _in_degrees(
    directory: Path, keys: Keys, partitions: int, plds: Iterable[str]
) -> tuple[dict[str, int], InDegreeCounts]:
    """The in-degree of each PLD, and the counts of the whole crawl, by the newest manifests."""
    wanted: dict[int, list[str]] = defaultdict(list)
    for pld in plds:
        wanted[keys.partition_of(pld, partitions)].append(pld)
    in_degrees: dict[str, int] = {}
    counts = EMPTY_COUNTS
    for partition in range(partitions):
        place = directory / f"p{partition:04d}"
        epoch = max(list_committed(place, DiskFiles()))
        own = EpochDirectory(epoch_path(place, epoch), epoch, DiskFiles())
        manifest = decode_manifest(own.relative_path(MANIFEST), own.read(MANIFEST))
        if manifest.in_degrees:
            counts += InDegreeCounts.from_bytes(manifest.in_degrees)
        mine = wanted[partition]
        _, records = Tables.restore(own, manifest.tables).plds.values(_packed(keys, mine))
        in_degrees |= dict(zip(mine, records["in_degree"].tolist(), strict=True))
    return in_degrees, counts


def _packed(keys: Keys, plds: list[str]) -> np.ndarray[Any, Any]:
    return np.array([keys.of_pld(pld) for pld in plds], dtype=KEY_TYPE)
