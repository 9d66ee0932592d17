"""Python's garbage collector is tamed only where nobody has chosen otherwise; each case in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from bigcrawl.scheduler.garbage import YOUNG_MAX

TELL = "import json; print(json.dumps([gc.get_threshold(), gc.get_freeze_count() > 0, gc.isenabled()]))"


def told(before: str, after: str = "") -> Any:
    """Thresholds, whether anything is frozen, whether the collector is on, when it was tamed between the two."""
    tame = "from bigcrawl.scheduler.garbage import tame_garbage_collector as tame; tame()"
    code = "; ".join(part for part in ("import gc", before, tame, after, TELL) if part)
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def test_collector_as_python_sets_it_is_tamed_once() -> None:
    """Fewer collections, over what came since; a second crawl of the process freezes nothing more."""
    assert told("") == [[YOUNG_MAX, 20, 100], True, True]
    assert told("", "gc.unfreeze(); tame()") == [[YOUNG_MAX, 20, 100], False, True]


def test_choice_of_the_project_stays() -> None:
    """Thresholds of its own, and a collector that it switched off."""
    assert told("gc.set_threshold(900, 5, 5)") == [[900, 5, 5], False, True]
    assert told("gc.set_threshold(0)")[:2] == [[0, 10, 10], False]
    assert told("gc.disable()")[2] is False


def test_memory_that_is_free_goes_back_to_the_system() -> None:
    """Holes between what lives on: half of 100 MB in pieces, every other one freed."""
    code = """
import os
from pathlib import Path
from bigcrawl.scheduler.garbage import give_memory_back
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
pieces = [bytes(20_000) for _ in range(5_000)]
kept = pieces[::2]
del pieces
before = resident()
give_memory_back()
print(before - resident())
"""
    freed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert int(freed) > 25_000_000
