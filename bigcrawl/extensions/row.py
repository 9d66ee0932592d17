from __future__ import annotations

import logging
import sys
from threading import RLock
from typing import TYPE_CHECKING

from tqdm import tqdm

if TYPE_CHECKING:
    from typing import TextIO


class _UntimedBar(tqdm):  # type: ignore[misc]
    monitor_interval = 0  # tqdm would start a thread that redraws slow bars


_UntimedBar.set_lock(RLock())  # tqdm's own lock works across processes


class _StreamAboveRow:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        _UntimedBar.write(text, file=self.stream, end="")

    def flush(self) -> None:
        self.stream.flush()


class ProgressRow:
    """A row on the terminal's standard error; with `has_log`, log lines are written above it."""

    def __init__(self) -> None:
        self._bar = _UntimedBar(bar_format="{desc}", file=sys.stderr, leave=False, dynamic_ncols=True)
        self._handlers: list[logging.StreamHandler[TextIO]] = [
            handler
            for handler in logging.root.handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream in {sys.stderr, sys.stdout}
        ]
        for handler in self._handlers:
            handler.setStream(_StreamAboveRow(handler.stream))  # type: ignore[arg-type]
        self.has_log = bool(self._handlers)

    def show_parts(self, parts: list[str]) -> None:
        columns = self._bar.format_dict["ncols"] or 80
        row = parts[0]
        for part in parts[1:]:
            if len(row) + len(part) + 2 >= columns:
                break
            row += f", {part}"
        self._bar.set_description_str(row)

    def close(self) -> None:
        for handler in self._handlers:
            handler.setStream(handler.stream.stream)  # type: ignore[attr-defined]
        self._handlers = []
        self._bar.close()
