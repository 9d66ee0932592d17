"""Starts processes that upload, and reads their output. A hung call of a store cannot be ended, but its process can."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.json_text import read_json
from bigcrawl.page_store.uploads import REFUSALS_MAX, UploadResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

STALL_S: Final = 300.0
"""A process gives up after this long without progress."""
STOP_S: Final = 5.0


class UploadError(TransientStoreError):
    """A process could not upload all files; `at` is the last file tried, `refused` those refused, unless all were."""

    def __init__(self, reason: str, at: str = "", refused: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.at = at
        self.refused = refused


@dataclass(frozen=True, slots=True)
class UploadOrders:
    """Files to upload, each with its `required` indexes, until `refusals_max` in a row or a stall of `stall_s`."""

    directory: Path
    url: str
    known: Sequence[str]
    required: Sequence[str]
    refusals_max: int = REFUSALS_MAX
    stall_s: float = STALL_S

    def command(self, wait_s: float, after: str) -> list[str]:
        command = [sys.executable, "-m", "bigcrawl.page_store", str(self.directory), self.url]
        command += ["--known", ",".join(self.known), "--required", ",".join(self.required)]
        command += ["--refusals", str(self.refusals_max), "--stall", f"{self.stall_s:g}"]
        return [*command, f"--after={after}", "--wait", f"{wait_s:g}"]


class UploadProcess:
    """An upload process, which ends by itself and survives the process that started it."""

    def __init__(self, orders: UploadOrders, wait_s: float = 0.0, after: str = "") -> None:
        self._directory = orders.directory
        self._complaint = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `uploaded`
        self._process = subprocess.Popen(
            orders.command(wait_s, after),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaint,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # for eggs
            start_new_session=True,
        )
        self.pid = self._process.pid

    def uploaded(self) -> Iterator[UploadResult]:
        """Yield the result of each file until the process has ended; raise UploadError if it failed."""
        failure: dict[str, Any] = {}
        assert self._process.stdout is not None
        with self._complaint, self._process.stdout as lines:
            for line in lines:
                told = self._parse_line(line)
                if isinstance(told, UploadResult):
                    yield told
                else:
                    failure = told
            status = self._process.wait()
            if status:
                reason = failure.get("error") or self._exit_message(status)
                raise UploadError(reason, failure.get("at", ""), failure.get("refused", ()))

    def detach(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._complaint.close()

    def stop(self) -> bool:
        """End the process; return False if a hung disk or mount still holds it."""
        for end in (self._process.terminate, self._process.kill):
            end()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                continue
            return True
        return False

    def _exit_message(self, status: int) -> str:
        self._complaint.seek(0)
        last = self._complaint.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the process that uploads ended with status {status}: {last[:500]}"

    def _parse_line(self, line: bytes) -> UploadResult | dict[str, Any]:
        try:
            told = read_json(line)
            return told if "error" in told else UploadResult(**{**told, "path": self._directory / told["path"]})
        except (ValueError, TypeError, KeyError) as problem:  # killed, or another version
            return {"error": f"the process that uploads said {line[:200]!r}: {problem!r}"}
