"""Has inputs measured by a process of their own, one for each target: no target finds what another left in memory."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.support.costs.worker import CPU_S_MAX, LENGTH, MEMORY_MB_MAX, READY
from tests.support.running import warm

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

PROJECT: Final = Path(__file__).parents[3]


class Cost(NamedTuple):
    """Of one input; of one that killed its process, the bounds."""

    cpu_s: float
    memory_mb: float
    fault: str = ""


class Measure:
    """The cost of inputs of one kind."""

    def __init__(self, target: str, *, is_scaled: bool = True) -> None:
        """Seconds are those of the core of docs/performance.md if `is_scaled`, else as they are."""
        self.target = target
        self._words = ["tests.support.costs.worker", target, *([] if is_scaled else ["as-is"])]
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._end()

    def cost(self, data: bytes) -> Cost:
        """Run an input."""
        worker = self._worker or self._begin()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(LENGTH.pack(len(data)) + data)
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            code = worker.wait()
            self._end()
            return Cost(CPU_S_MAX, MEMORY_MB_MAX, f"killed, status {code}")
        return Cost(**json.loads(answer))

    def _begin(self) -> subprocess.Popen[bytes]:
        self._worker = warm.start(self._words, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._worker.stdout is not None
        assert self._worker.stdout.readline() == READY, "the worker does not start"
        return self._worker

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):  # what it did not read
                    pipe.close()
