"""The process that reads pickles of other crawlers: `python -m bigcrawl_foreign.unpickling`.

It has no descriptors but its pipes; its memory, its time for an entry and the types of an entry are limited. An entry
that exceeds a limit is an error, or kills the process, which the reader notices.

An entry is sent as its length (u32, little-endian) and its bytes. So is the answer, whose first byte is 1 before a
packed dict, or 0 before an error's reason.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import pickle
import resource
import signal
import struct
import sys
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final

from bigcrawl.scheduler.adapter.values.codec import NOT_STORABLE, PLAIN

LENGTH: Final = struct.Struct("<I")
ENTRY_SECONDS: Final = 5
MEMORY_BYTES: Final = 512 << 20  # beyond the memory of the process at its start
NODES_MAX: Final = 200_000  # a pickle of a hundred bytes can stand for a tree of any size
NESTED_MAX: Final = 100

TYPES: Final[dict[tuple[str, str], Any]] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "OrderedDict"): OrderedDict,
    ("datetime", "date"): datetime.date,
    ("datetime", "datetime"): datetime.datetime,
    ("datetime", "time"): datetime.time,
    ("datetime", "timedelta"): datetime.timedelta,
    ("datetime", "timezone"): datetime.timezone,
    ("decimal", "Decimal"): Decimal,
    ("_codecs", "encode"): lambda text, _encoding="latin-1": str(text).encode("latin-1"),  # bytes, up to protocol 2
}
"""Permitted classes, besides those of plain values."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return one of `TYPES`; import nothing."""
        module = "builtins" if module == "__builtin__" else module  # up to protocol 2
        if (module, name) not in TYPES:
            raise pickle.UnpicklingError(f"it holds a {module}.{name}"[:200])
        return TYPES[module, name]


def read_entry(data: bytes) -> bytes:
    """Return the answer to an entry: a pickle or a JSON object. Raises only MemoryError."""
    try:
        fields = json.loads(data) if data[:1] == b"{" else _Unpickler(io.BytesIO(data)).load()
        if type(fields) is not dict:
            raise ValueError(f"it is a {type(fields).__name__}, not a request")
        _check_size(fields)
        return b"\x01" + PLAIN.pack(fields)
    except (*NOT_STORABLE, pickle.UnpicklingError, EOFError, LookupError, ArithmeticError) as error:
        reason = str(error) or type(error).__name__
        return b"\x00" + reason[:200].encode("utf-8", "replace")


def _check_size(value: object) -> None:
    """Raise ValueError unless a value is a small tree: references may turn few bytes into a large one."""
    left: list[tuple[object, int]] = [(value, 0)]
    nodes = 0
    while left:
        inner, depth = left.pop()
        nodes += 1
        if nodes > NODES_MAX or depth > NESTED_MAX:
            raise ValueError("it holds too many values, or is nested too deeply")
        if isinstance(inner, dict):
            left += [(each, depth + 1) for pair in inner.items() for each in pair]
        elif isinstance(inner, list | tuple | set | frozenset):
            left += [(each, depth + 1) for each in inner]


def _limit_process() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        size = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    with contextlib.suppress(*NOT_STORABLE):
        PLAIN.pack(object())  # it imports code when needed, which it could not open later
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the reader closes the pipe


def serve_entries(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer entries until the pipe is closed. SIGALRM kills the process: no Python handler runs within a pickle."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        data = source.read(LENGTH.unpack(head)[0])
        signal.alarm(ENTRY_SECONDS)
        answer = read_entry(data)
        signal.alarm(0)
        sink.write(LENGTH.pack(len(answer)) + answer)
        sink.flush()


if __name__ == "__main__":
    _limit_process()
    serve_entries(sys.stdin.buffer, sys.stdout.buffer)
