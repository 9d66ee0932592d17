"""Files that are written on another machine, whose locks are not seen here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bigcrawl.warc import segments
from bigcrawl.warc.files import QUIET_S

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def write_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have writers of this process begin files as those of another machine, on a mount that keeps locks to itself."""
    monkeypatch.setattr(segments, "boot_id", lambda: "another kernel")
    monkeypatch.setattr(segments, "lock_named", lambda fd, path: True)


def grow_old(path: Path) -> None:
    """Let a file be as if nobody had written to it for as long as no living writer is silent."""
    before = path.stat().st_mtime - QUIET_S - 1
    os.utime(path, (before, before))
