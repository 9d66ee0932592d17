"""Starts processes that upload, and reads what they tell.

Nobody can end a call of a store that hangs, but a process that makes it can be ended. So nodes and commands upload by
processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.json_text import read_json
from bigcrawl.page_store.uploads import REFUSALS_MAX, Uploaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

STALL_S: Final = 300.0
"""How long nothing may move, neither 8 MiB to the store nor a file, before a process gives up."""
STOP_S: Final = 5.0


class UploadError(TransientStoreError):
    """A process could not upload all.

    Attributes:
        at: the name of the file that it tried last; empty if it tried none.
        refused: names of the files that the store refused, if it was offered all; empty if too many in a row.
    """

    def __init__(self, reason: str, at: str = "", refused: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.at = at
        self.refused = refused


@dataclass(frozen=True, slots=True)
class UploadOrders:
    """What processes upload, and whereto.

    Attributes:
        directory: of the files.
        url: of the store.
        known: how names of indexes end.
        required: of these, the indexes that each file gets before it is uploaded.
        refusals_max: after how many refused files in a row a process ends.
        stall_s: how long nothing may move.
    """

    directory: Path
    url: str
    known: Sequence[str]
    required: Sequence[str]
    refusals_max: int = REFUSALS_MAX
    stall_s: float = STALL_S

    def command(self, wait_s: float, after: str) -> list[str]:
        """Return the command of a process that waits so long for indexes, and begins behind this file."""
        command = [sys.executable, "-m", "bigcrawl.page_store", str(self.directory), self.url]
        command += ["--known", ",".join(self.known), "--required", ",".join(self.required)]
        command += ["--refusals", str(self.refusals_max), "--stall", f"{self.stall_s:g}"]
        return [*command, f"--after={after}", "--wait", f"{wait_s:g}"]


class UploadProcess:
    """A process at work, which ends by itself: nothing that its store does holds it longer than `UploadOrders.stall_s`.

    It has a session of its own, and goes on if the one that started it ends.
    """

    def __init__(self, orders: UploadOrders, wait_s: float = 0.0, after: str = "") -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
        """
        self._directory = orders.directory
        self._complaint = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `uploaded`
        self._process = subprocess.Popen(
            orders.command(wait_s, after),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaint,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # of an egg too
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __repr__(self) -> str:
        return f"<UploadProcess {self.pid}>"

    def uploaded(self) -> Iterator[Uploaded]:
        """Yield what became of each file, until the process has ended. Call it once.

        Raises:
            UploadError: the process has failed, or was killed.
        """
        failure: dict[str, Any] = {}
        assert self._process.stdout is not None
        with self._complaint, self._process.stdout as lines:
            for line in lines:
                told = self._read(line)
                if isinstance(told, Uploaded):
                    yield told
                else:
                    failure = told
            status = self._process.wait()
            if status:
                reason = failure.get("error") or self._last_words(status)
                raise UploadError(reason, failure.get("at", ""), failure.get("refused", ()))

    def leave(self) -> None:
        """Listen no longer. The process goes on."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._complaint.close()

    def stop(self) -> bool:
        """End it; what it has not moved is here. False: it was killed, but a disk or a mount that hangs still holds it.

        Waits for `STOP_S` at most, and as long once more after killing it.
        """
        for end in (self._process.terminate, self._process.kill):
            end()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                continue
            return True
        return False

    def _last_words(self, status: int) -> str:
        self._complaint.seek(0)
        last = self._complaint.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the process that uploads ended with status {status}: {last[:500]}"

    def _read(self, line: bytes) -> Uploaded | dict[str, Any]:
        """Read a line: what became of a file, or why the process has failed."""
        try:
            told = read_json(line)
            return told if "error" in told else Uploaded(**{**told, "path": self._directory / told["path"]})
        except (ValueError, TypeError, KeyError) as problem:  # it was killed, or is of another version
            return {"error": f"the process that uploads said {line[:200]!r}: {problem!r}"}
