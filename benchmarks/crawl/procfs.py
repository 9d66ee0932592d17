"""What the kernel counts: CPU time of processes and cores, memory, and which core a process may use."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
CRAWLER_CORE: Final = 0
ORIGIN_CORE: Final = 1  # and Redis', and the harness'
# Runs only where nothing else wants to, and no longer than the benchmark that began it.
_SPIN: Final = """
import os, sys
parent, core = map(int, sys.argv[1:])
os.sched_setaffinity(0, {core})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
_IDLE_COLUMNS: Final = (3, 4)  # idle and iowait, of the columns behind a core's name in /proc/stat


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process, those that have ended included; steps of 10 ms."""
    # The second field is the program's name, in brackets, and may itself hold spaces and brackets.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def run_ns(pid: int) -> int:
    """How long the threads of a process have run, as the scheduler counts it; without those that have ended."""
    return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def rss_bytes(pid: int) -> int:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def core_busy_seconds(core: int) -> float:
    """Time since the machine's start in which a core was not idle, whoever used it."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *columns = line.split()
        if name == f"cpu{core}":
            # The last two are guests' time, which the first two hold already.
            return sum(int(value) for i, value in enumerate(columns[:8]) if i not in _IDLE_COLUMNS) / TICKS_PER_S
    raise ValueError(f"this machine has no core {core}")


def keep_to(core: int) -> None:
    """Keep this process on one core of the two that the benchmarks use; exit with a line when it has not both."""
    allowed = os.sched_getaffinity(0)
    if not {CRAWLER_CORE, ORIGIN_CORE} <= allowed:
        raise SystemExit(f"cores {CRAWLER_CORE} and {ORIGIN_CORE} are needed; this process may use {sorted(allowed)}")
    os.sched_setaffinity(0, {core})


def pin(pid: int, core: int) -> None:
    """Keep all threads of a process, and those they start, on one core."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


@contextmanager
def awake() -> Iterator[None]:
    """Keep both cores from falling asleep: a process that runs a tenth of the time else pays for each waking."""
    words = (sys.executable, "-c", _SPIN, str(os.getpid()))
    spinning = [subprocess.Popen((*words, str(core))) for core in (CRAWLER_CORE, ORIGIN_CORE)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
