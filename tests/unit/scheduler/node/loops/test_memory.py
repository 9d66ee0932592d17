"""Collector and malloc are tamed only where nobody has chosen otherwise; each case in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from bigcrawl.scheduler.node.loops.memory import YOUNG_MAX

# From 3.12 on some objects are frozen before anybody has asked for it.
TELL = "import json; print(json.dumps([gc.get_threshold(), gc.get_freeze_count() > frozen, gc.isenabled()]))"

TAME = """
import asyncio
from bigcrawl.scheduler.node.loops import memory
memory.SETTLED_S = 0
async def tame():
    frozen_before = gc.get_freeze_count()
    memory.tame_memory()
    assert gc.get_freeze_count() == frozen_before, "not while a crawl starts"
    await asyncio.sleep(0.01)
"""


def told(before: str, after: str = "") -> Any:
    """Thresholds, whether anything is frozen, whether the collector is on, when a loop tamed it between the two."""
    begin = "import gc; frozen = gc.get_freeze_count()"
    code = "\n".join(part for part in (begin, before, TAME, "asyncio.run(tame())", after, TELL) if part)
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def test_collector_as_python_sets_it_is_tamed_once() -> None:
    """Fewer collections, over what came since; a second crawl of the process freezes nothing more."""
    assert told("") == [[YOUNG_MAX, 20, 100], True, True]
    assert told("", "gc.unfreeze(); asyncio.run(tame())") == [[YOUNG_MAX, 20, 100], False, True]


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
from bigcrawl.scheduler.node.loops.memory import give_memory_back
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


LARGE_BLOCKS = """
import asyncio, os, sys
from pathlib import Path
from bigcrawl.scheduler.node.loops.memory import tame_memory
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
async def tame(): tame_memory()
if sys.argv[1:]: asyncio.run(tame())
bytes(30_000_000)  # glibc learns of it that blocks up to this size belong into a heap
batches, staying = [], []
for _ in range(100):
    batches.append(b"x" * 1_000_000)
    staying.append(b"x" * 20_000)
before = resident()
del batches
print(before - resident())
"""


def given_back(*arguments: str, **environment: str) -> int:
    """Bytes of 100 MB in large blocks that go back when these are freed, small ones between them staying."""
    command = [sys.executable, "-c", LARGE_BLOCKS, *arguments]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return int(told.stdout)


def test_large_blocks_go_back_when_they_are_freed() -> None:
    """Not so before, nor where the environment has settings for malloc."""
    assert given_back("tame") > 90_000_000
    assert given_back() < 10_000_000
    assert given_back("tame", MALLOC_ARENA_MAX="8") < 10_000_000
