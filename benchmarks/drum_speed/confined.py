"""A process of its own, kept to one core, whose memory, page cache included, the kernel holds to a bound."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROOT: Final = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def bounded(limit_bytes: int) -> Iterator[Path | None]:
    """Yield the file that takes the ids of processes to be bounded; None where this user may make no cgroup."""
    for parent, limit_name in ((_ROOT / "memory", "memory.limit_in_bytes"), (_ROOT, "memory.max")):
        group = parent / f"bigcrawl-bench-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit_name).write_text(str(limit_bytes))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        try:
            yield group / "cgroup.procs"
        finally:
            group.rmdir()
        return
    yield None


def enter(procs: Path | None, core: int) -> None:
    """Move this process into the group and onto the core."""
    if procs is not None:
        procs.write_text(str(os.getpid()))
    os.sched_setaffinity(0, {core})


def run_module(name: str, arguments: Sequence[str]) -> str:
    """Run a module of this benchmark in a process of its own; return what it printed.

    Raises:
        RuntimeError: it failed; what it said is in the message.
    """
    done = subprocess.run([sys.executable, "-m", name, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
