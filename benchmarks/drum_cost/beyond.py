"""bigcrawl's row in the paper's tables, at sizes that nobody can run.

A part of alpha that every URL has alike, its text, its tuple and the queue, is as measured. What the runs move is
`replayed` with the merges that a `Drum` of that memory and disk would make.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from benchmarks.drum_cost.models import PAPER, drum_alpha, drum_batch, drum_bound
from benchmarks.drum_cost.ours import tuples_max
from benchmarks.drum_cost.replay import replayed, run_bytes, whole_key_bytes
from bigcrawl.drum.format import KEY_BYTES
from bigcrawl.drum.memtable import MEMTABLE_KEYS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.drum_cost.trial import Trial

# The most that a Drum may have; more buckets, larger merges.
BUCKETS_MAX: Final = 16_384
# R / 4M of Table 2, as a power of two.
_PAPER_BUCKETS: Final = 1024
# What text that does not compress takes beside itself: its length.
_RAW_OVERHEAD_BYTES: Final = 2
# A waiting tuple's key, once in the offers file, and once with its operation in that of its bucket.
_WAITING_BYTES: Final = KEY_BYTES + KEY_BYTES + 1


@dataclass(frozen=True, slots=True)
class PerUrl:
    """What a URL moves whatever the size of the set, as parts of alpha.

    Attributes:
        text: aux, written and read.
        tuples: key and answer.
        queue: text of new URLs, p.
    """

    text: float
    tuples: float
    queue: float

    @classmethod
    def of(cls, trial: Trial) -> PerUrl:
        """Take it from a run of bigcrawl's."""
        return cls(trial.share("text"), trial.share("tuples"), trial.share("queue"))

    def raw(self) -> PerUrl:
        """The same for text that does not compress at all."""
        return replace(self, text=2 * (1 + _RAW_OVERHEAD_BYTES / PAPER.text_bytes))


def our_alpha(
    per_url: PerUrl, offered: float, memory_bytes: int, disk_bytes: float, buckets: int = BUCKETS_MAX
) -> float:
    """Return the modelled alpha of a `Drum` that begins with the paper's U keys.

    Args:
        per_url: what does not depend on sizes.
        offered: URLs in all.
        memory_bytes: R.
        disk_bytes: D.
        buckets: of the `Drum`.
    """
    waiting = _WAITING_BYTES + per_url.text / 2 * PAPER.text_bytes
    batch = min(tuples_max(memory_bytes, buckets), disk_bytes / waiting)
    return per_url.text + per_url.tuples + per_url.queue + _set_share(offered, batch, buckets)


def steps(per_url: PerUrl, offered: float, memory_bytes: int, disk_bytes: float) -> dict[str, float]:
    """Return alpha from the paper's DRUM to bigcrawl's, one difference after another; disk is what limits a pass."""
    bound = drum_bound(PAPER)
    batch = drum_batch(PAPER, memory_bytes, disk_bytes)
    short = _set_share(offered, batch, _PAPER_BUCKETS)
    text_saved = 2 - per_url.text
    return {
        "DRUM (Theorem 2)": drum_alpha(PAPER, offered, memory_bytes, disk_bytes),
        "tiered runs": bound + _set_share(offered, batch, _PAPER_BUCKETS, whole_key_bytes),
        "short keys": bound + short,
        "compressed aux": bound + short - text_saved,
        "keys written twice, read twice, answers": bound
        + short
        - text_saved
        + per_url.tuples
        - 2 * KEY_BYTES / PAPER.text_bytes,
        "a Drum's own merges": our_alpha(per_url, offered, memory_bytes, disk_bytes),
    }


def _set_share(offered: float, batch: float, buckets: int, length: Callable[[int, int], int] = run_bytes) -> float:
    """What the runs move, as a part of alpha."""
    cost = replayed(
        offered,
        batch,
        buckets=buckets,
        unique_share=PAPER.unique_share,
        seen_before=PAPER.seen_before,
        fresh_max=MEMTABLE_KEYS_MAX,
        length=length,
    )
    return cost.total / (PAPER.text_bytes * offered)
