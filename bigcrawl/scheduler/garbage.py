"""Python's garbage collector, and the system's allocator, in a process that runs for days."""

from __future__ import annotations

import ctypes
import gc

# Objects made and not freed between two collections of the young: some 200 pages' worth. Python's own 700
# come with every third page, and each tenth and hundredth of those looks at the frontier's tables again.
YOUNG_MAX = 50_000
PYTHONS_THRESHOLDS = ((700, 10, 10), (2_000, 10, 10), (2_000, 10, 0))  # up to 3.12, and since


def tame_garbage_collector() -> None:
    """Leave what there is by now out of collections, and collect less often; not where a project has chosen.

    Cost: what a cycle holds lives up to 200 pages longer, a few MB. Gain: an eighth of a page's CPU.
    """
    if gc.get_threshold() in PYTHONS_THRESHOLDS:
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_MAX, 20, 100)


def give_memory_back() -> None:
    """Give back to the system what malloc keeps of freed memory, where it is one that can be told to (glibc's).

    Batches of all sizes come and go; between those that live for long, in the heaps of several threads, tens of MB
    of holes stay with the process otherwise. Cost: some 10 ms for 200 MB, in any thread; who asks malloc for memory
    waits meanwhile.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
