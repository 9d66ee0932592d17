"""`make test-pythons` tries every interpreter it is given, and passes over none in silence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def told(pythons: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-C", str(REPOSITORY), "test-pythons", f"PYTHONS={pythons}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_interpreter_that_is_missing_is_a_failure(tmp_path: Path) -> None:
    """It is named, with the remedy; those behind it are tried all the same."""
    done = told(f"{tmp_path}/python3.98 {tmp_path}/python3.99")
    assert done.returncode != 0
    assert f"failed on: {tmp_path}/python3.98 {tmp_path}/python3.99" in done.stderr
    assert f"{tmp_path}/python3.98 is not Python 3.11 or later" in done.stderr


def test_no_interpreter_is_a_question() -> None:
    """What to say is in the answer."""
    done = told("")
    assert done.returncode != 0
    assert 'make test-pythons PYTHONS="python3.12 python3.13"' in done.stderr
