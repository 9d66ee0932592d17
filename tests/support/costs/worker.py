"""The process that runs inputs: `python -m tests.support.costs.worker TARGET [as-is]`.

On standard input, four bytes of length and the input; for each a line of JSON on standard output: seconds of CPU, and
MiB of memory at the highest above those before. Beyond its bounds of either the process is killed, or says so.

A second of CPU is worth less on a slow or busy machine. So a fixed piece of work is timed just before and after each
input, and seconds are told as on the core of docs/performance.md, which does it in `WORK_S` and needs 1.5 ms for a page
of `make bench`. Seconds of a faster core are told as they are, and so are all with `as-is`.
"""

from __future__ import annotations

import gc
import json
import logging
import re
import resource
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO, Final

from tests.support.costs.targets import TARGETS, Desk

CPU_S_MAX: Final = 12
MEMORY_MB_MAX: Final = 3 << 10
READY: Final = b"ready\n"
WORK_S: Final = 0.0145
_WORK: Final = b"<a href='/x?y=%d'>z</a> &amp; " * 36_000
_A_LINK: Final = re.compile(rb"<a\s+href='([^']*)'>")
LENGTH: Final = struct.Struct("<I")


def main(name: str, source: BinaryIO, sink: BinaryIO, *, is_scaled: bool) -> None:
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB_MAX << 20, MEMORY_MB_MAX << 20))
    target, desk = TARGETS[name], Desk()
    target(desk, b"")  # what is imported and compiled with the first input is not its fault
    gc.collect()
    gc.freeze()  # else what is imported is looked through before each input, which takes longer than most inputs
    sink.write(READY)
    sink.flush()
    while length := source.read(LENGTH.size):
        data = source.read(*LENGTH.unpack(length))
        gc.collect()
        before_mb = _reset_peak()
        slowness = _slowness() if is_scaled else 1.0
        began = time.process_time()
        limit = int(began) + CPU_S_MAX
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        fault = ""
        try:
            target(desk, data)
        except MemoryError:
            fault = "MemoryError"
        except Exception as error:  # noqa: BLE001 - what fails is not expensive, and others look for it
            fault = type(error).__name__
        took = time.process_time() - began
        desk.empty()
        if is_scaled:
            took /= max(1.0, min(slowness, _slowness()))
        answer = {"cpu_s": took, "memory_mb": _peak_mb() - before_mb, "fault": fault}
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


def _slowness() -> float:
    """How much longer a fixed piece of work takes than it should: what pages meet, patterns and small objects."""
    began = time.process_time()
    found = {match[1] + b"%d" % number: number for number, match in enumerate(_A_LINK.finditer(_WORK))}
    sorted(found, key=len)
    return (time.process_time() - began) / WORK_S


def _reset_peak() -> float:
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_mb()


def _peak_mb() -> float:
    """The most memory that was resident since it was reset, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("Linux tells of a process' memory")


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer, is_scaled="as-is" not in sys.argv)
