"""A partition's table of votes: what pages' links have said of its URLs, fetched or not (step 5).

`records.votes` says what a vote is. A prioritizer sees them, and a URL that is admitted takes what it has received with
it, so that its node knows the rank of its page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.records.votes import NOT_GIVEN, codes_of, flags_with, no_votes, summed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.records.votes import VoteArray


def added_votes(table: Bucket, rows: VoteArray) -> tuple[KeyArray, VoteArray] | None:
    """Return the keys that votes change, ascending, and what they have then; None if nothing changes.

    Raises:
        CorruptionError: a run is damaged.
        OSError: the disk failed.
    """
    keys, whose = np.unique(rows["key"], return_inverse=True)
    before = _votes_of(table, keys)
    after = summed(rows, before, whose)
    changed = after != before
    return (keys[changed], after[changed]) if changed.any() else None


def votes_for(table: Bucket, urls: Sequence[QueuedUrl]) -> VoteArray:
    """Return what has been said of URLs, in their order. Raises what `added_votes` raises. Cost: 1 us each."""
    return _votes_of(table, np.array([url.key for url in urls], dtype=np.uint64))


def with_received(table: Bucket, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
    """Return URLs as they are admitted: with what they have received in their flags."""
    codes = codes_of(votes_for(table, urls)["received"]).tolist()
    return [url._replace(flags=flags_with(url.flags, code)) for url, code in zip(urls, codes, strict=True)]


def _votes_of(table: Bucket, keys: KeyArray) -> VoteArray:
    if not len(table):
        return no_votes(keys)
    found, votes = table.values(keys)
    votes["given"][~found] = NOT_GIVEN
    return votes
