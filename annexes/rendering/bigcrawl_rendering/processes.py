"""The processes of a browser, found in /proc by a mark in the command line of the first; their memory and end.

Playwright's driver, which starts the browser, is one of them.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PROC: Final = Path("/proc")


class Process(NamedTuple):
    """A process; `began`, its start time, distinguishes it from a later one with the same number."""

    pid: int
    began: int


def processes_of(mark: str, *, with_driver: bool = True) -> list[Process]:
    """Return the processes whose command line has the mark, and all below them; their driver last."""
    parents: dict[int, tuple[int, int]] = {}
    found: list[int] = []
    for path in _PROC.iterdir():
        if path.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (path / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(path.name)] = int(fields[1]), int(fields[19])
                if mark.encode() in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
    drivers = [parent for pid in found if _is_driver(parent := parents[pid][0])] if with_driver else []
    found = drivers + found
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in parents.items():
        children.setdefault(parent, []).append(pid)
    tree: dict[int, Process] = {}
    while found:
        pid = found.pop()
        if pid not in tree and pid != os.getpid():
            tree[pid] = Process(pid, parents[pid][1])
            found += children.get(pid, ())
    return list(tree.values())


def _is_driver(pid: int) -> bool:
    with suppress(OSError):
        return b"run-driver" in (_PROC / str(pid) / "cmdline").read_bytes()
    return False


def memory_of(processes: list[Process]) -> int:
    """Return the private memory of these processes, in bytes."""
    total = 0
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = (_PROC / str(process.pid) / "statm").read_text().split()
            total += (int(resident) - int(shared)) * _PAGE_BYTES
    return total


def is_alive(process: Process) -> bool:
    try:
        state, *_, began = (_PROC / str(process.pid) / "stat").read_bytes().rpartition(b")")[2].split()[:20]
    except (OSError, ValueError):
        return False
    return state != b"Z" and int(began) == process.began


def kill_all(processes: list[Process]) -> None:
    for process in processes:
        if is_alive(process):
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
