"""Sums pages' votes for each URL of a partition, fetched or not; an admitted URL carries its received rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.features.votes.ranks import NOT_GIVEN, codes_of, flags_with, no_votes, sum_votes
from bigcrawl.features.votes.rows import TABLE, VOTED
from bigcrawl.scheduler.partition.fold.feature import StepPart
from bigcrawl.scheduler.records.member import PRIORITY_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.features.votes.ranks import VoteArray
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class VoteStep(StepPart):
    def fold_rows(self, rows: Mapping[int, npt.NDArray[Any]]) -> None:
        voted, table = rows[VOTED], self.tables[TABLE]
        if not len(voted):
            return
        keys, whose = np.unique(voted["key"], return_inverse=True)
        before = _votes_of(table, keys)
        after = sum_votes(voted, before, whose)
        changed = after != before
        if changed.any():
            self.tables.commit(table, table.put(keys[changed], after[changed]))

    def known_of(self, urls: Sequence[QueuedUrl]) -> Mapping[str, npt.NDArray[Any]]:
        votes = self._votes_for(urls)
        return {
            "given": np.minimum(votes["given"], PRIORITY_MAX),
            "received": votes["received"].astype(np.float64),
        }

    def admitted(self, urls: list[QueuedUrl]) -> list[QueuedUrl]:
        codes = codes_of(self._votes_for(urls)["received"]).tolist()
        return [url._replace(flags=flags_with(url.flags, code)) for url, code in zip(urls, codes, strict=True)]

    def _votes_for(self, urls: Sequence[QueuedUrl]) -> VoteArray:
        return _votes_of(self.tables[TABLE], np.array([url.key for url in urls], dtype=np.uint64))


def _votes_of(table: Bucket, keys: KeyArray) -> VoteArray:
    if not len(table):
        return no_votes(keys)
    found, votes = table.values(keys)
    votes["given"][~found] = NOT_GIVEN
    return votes
