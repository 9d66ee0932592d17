"""Sorts lines with bounded memory: sorted runs on disk, merged by 64 at each level."""

from __future__ import annotations

import heapq
import tempfile
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

BYTES_MAX = 16 << 20
_LINE_BYTES = 33
_RUNS_MAX = 64  # open files of a level


class SortedLines:
    """Returns lines in the order of their bytes. Runs have no names, so a killed process leaves none."""

    def __init__(self, directory: Path, bytes_max: int = BYTES_MAX) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._lines: list[bytes] = []
        self._bytes = 0
        self._levels: list[list[BinaryIO]] = []

    def __repr__(self) -> str:
        return f"<SortedLines lines={len(self._lines)} runs={sum(map(len, self._levels))}>"

    def close(self) -> None:
        self._lines = []
        for runs in self._levels:
            _close_runs(runs)

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._bytes += len(line) + _LINE_BYTES
        if self._bytes >= self._bytes_max:
            self._end_run()

    def __iter__(self) -> Iterator[bytes]:
        self._lines.sort()
        runs = (run for level in self._levels for run in level)
        return heapq.merge(*map(_from_start, runs), self._lines)

    def _end_run(self) -> None:
        self._lines.sort()
        run = self._write_run(self._lines)
        self._lines, self._bytes = [], 0
        for runs in self._levels:
            runs.append(run)
            if len(runs) < _RUNS_MAX:
                return
            run = self._write_run(heapq.merge(*map(_from_start, runs)))
            _close_runs(runs)
        self._levels.append([run])

    def _write_run(self, lines: Iterable[bytes]) -> BinaryIO:
        run: BinaryIO = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed with the others
        run.writelines(lines)
        return run


def _close_runs(runs: list[BinaryIO]) -> None:
    while runs:
        runs.pop().close()


def _from_start(run: BinaryIO) -> BinaryIO:
    run.seek(0)
    return run
