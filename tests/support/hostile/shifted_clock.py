"""The wall clock of some processes, set forward and back as an operator or a time server may, and no other clock.

A library is preloaded into them (shifted_clock.c). Debian's libfaketime does not serve: with the monotonic clock left
alone, its sleep until a moment of that clock fails.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
_SHIFT = struct.Struct("q")


class ShiftedClock:
    """A clock for programs that are started with `environment`; needs a C compiler."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        library, self._file = directory / "shifted_clock.so", directory / "shift"
        options = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run(["cc", *options, "-o", str(library), str(_SOURCE)], check=True)
        self._file.write_bytes(_SHIFT.pack(0))
        self.environment = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(self._file)}

    def set(self, shift_s: float) -> None:
        """Let it be so much ahead of the machine's, from now on, for all who see it."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(_SHIFT.pack(round(shift_s * 1_000_000_000)))
