"""A real py-wacz, which validates WACZ files; `make check-system` brings it."""

from __future__ import annotations

import subprocess
from pathlib import Path

WACZ = Path(__file__).resolve().parents[3] / "build" / "wacz" / "bin" / "wacz"


def assert_valid(path: Path) -> None:
    """Let py-wacz check the parts of a file, their hashes and their description."""
    assert WACZ.exists(), f"{WACZ} is missing; run: scripts/install_wacz {WACZ.parents[1]}"
    done = subprocess.run([WACZ, "validate", "-f", path], capture_output=True, text=True, check=False)
    assert (done.returncode, "the passed WACZ is valid" in done.stdout) == (0, True), done.stdout + done.stderr
