"""Settings of the garbage collector and malloc for a process that runs for days."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys

# New objects between two collections of the youngest generation: about 200 pages' worth. Python's default of 700 is
# reached with every third page, and every tenth and hundredth collection looks at the frontier's tables again.
YOUNG_MAX = 50_000
PYTHONS_THRESHOLDS = ((700, 10, 10), (2_000, 10, 10), (2_000, 10, 0))  # the defaults up to Python 3.12, and later

SETTLED_S = 60.0  # a look at all objects takes a tenth of a second, which a short crawl can do without

# By default glibc adapts: once a large block was freed, blocks up to its size, at most 32 MB, are no longer mapped
# separately, and twice as much free memory is kept. Then batches of all sizes live in heaps, one for each thread, among
# objects that stay.
MMAP_THRESHOLD_BYTES = 512 << 10
TRIM_THRESHOLD_BYTES = 4 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of malloc.h


def tame_memory() -> None:
    """Set the garbage collector and malloc for a long run, unless the project has set them. Needs a running loop."""
    _tame_garbage_collector()
    _tame_malloc()


def untrack_async_generators() -> None:
    """Make the running event loop stop tracking asynchronous generators.

    It tracks them for `loop.shutdown_asyncgens`, which nobody calls if the loop is a Twisted reactor's; Scrapy makes
    thirty of them for a page. The loop still closes one that is collected before its end. Gain: 50 us of CPU a page.
    """
    sys.set_asyncgen_hooks(firstiter=None)


def _tame_garbage_collector() -> None:
    """Collect less often, and in a minute exclude all objects that exist by then.

    Cost: objects in cycles live up to 200 pages longer, a few MB. Gain: an eighth of a page's CPU.
    """
    if gc.get_threshold() in PYTHONS_THRESHOLDS:
        gc.set_threshold(YOUNG_MAX, 20, 100)
        asyncio.get_running_loop().call_later(SETTLED_S, _exclude_what_stays)


def _exclude_what_stays() -> None:
    gc.collect()
    gc.freeze()


def _tame_malloc() -> None:
    """Keep glibc's malloc to one heap without large blocks; do nothing on other systems."""
    chosen = any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ
    if _mallopt is not None and not chosen:
        _mallopt(_M_ARENA_MAX, 1)
        _mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        _mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)


def give_memory_back() -> None:
    """Give freed memory that malloc keeps back to the system, if malloc is glibc's.

    Batches of all sizes come and go. Otherwise tens of MB of holes between those that live long stay with the process.
    Cost: some 10 ms for 200 MB, in any thread; threads that allocate memory wait meanwhile.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


_libc = ctypes.CDLL(None)
_malloc_trim = getattr(_libc, "malloc_trim", None)
# musl's mallopt does nothing, and other systems have none. A system with malloc_trim uses glibc's numbers.
_mallopt = getattr(_libc, "mallopt", None) if _malloc_trim is not None else None
