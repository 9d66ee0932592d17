"""What Python and the system keep in memory, in a process that runs for days."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

# Objects made and not freed between two collections of the young: some 200 pages' worth. Python's own 700
# come with every third page, and each tenth and hundredth of those looks at the frontier's tables again.
YOUNG_MAX = 50_000
PYTHONS_THRESHOLDS = ((700, 10, 10), (2_000, 10, 10), (2_000, 10, 0))  # up to 3.12, and since

# Left alone, glibc raises the size from which a block is a mapping of its own to that of the largest one freed, up to
# 32 MB, and what is never given back to twice that: batches of all sizes then live in heaps, among what stays, one
# heap for each thread.
MMAP_THRESHOLD_BYTES = 512 << 10
TRIM_THRESHOLD_BYTES = 4 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of malloc.h


def tame_memory() -> None:
    """Set the garbage collector and malloc for a long run; each only where the project has not chosen."""
    _tame_garbage_collector()
    _tame_malloc()


def untrack_async_generators() -> None:
    """Have the event loop that runs keep no set of the asynchronous generators there are.

    The set is for `loop.shutdown_asyncgens`, which nobody calls where the loop is a Twisted reactor's, and Scrapy makes
    thirty of them for a page. The loop still closes one that is collected before its end. Gain: 50 us of CPU a page.
    """
    sys.set_asyncgen_hooks(firstiter=None)


def _tame_garbage_collector() -> None:
    """Leave what there is by now out of collections, and collect less often.

    Cost: what a cycle holds lives up to 200 pages longer, a few MB. Gain: an eighth of a page's CPU.
    """
    if gc.get_threshold() in PYTHONS_THRESHOLDS:
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_MAX, 20, 100)


def _tame_malloc() -> None:
    """Keep glibc's malloc to one heap, without large blocks; nothing on another system."""
    chosen = any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ
    if _mallopt is not None and not chosen:
        _mallopt(_M_ARENA_MAX, 1)
        _mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        _mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)


def give_memory_back() -> None:
    """Give back to the system what malloc keeps of freed memory, where it is one that can be told to (glibc's).

    Batches of all sizes come and go; between those that live for long tens of MB of holes stay with the process
    otherwise. Cost: some 10 ms for 200 MB, in any thread; who asks malloc for memory waits meanwhile.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


_libc = ctypes.CDLL(None)
_malloc_trim = getattr(_libc, "malloc_trim", None)
# musl has a mallopt that does nothing, and other systems have none: where malloc_trim is, numbers are glibc's.
_mallopt = getattr(_libc, "mallopt", None) if _malloc_trim is not None else None
