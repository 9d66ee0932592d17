"""Files of a store that is a directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bigcrawl.store.local_files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_no_sync_has_more_than_a_piece_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So whoever counts pieces sees that a slow medium works, and a file of a gibibyte gets to it in the end."""
    synced, steps, sync = 0, [], os.fsync

    def counted(fd: int) -> None:
        nonlocal synced
        size = os.fstat(fd).st_size if os.path.isfile(f"/proc/self/fd/{fd}") else synced  # noqa: PTH113 - a link of /proc
        steps.append(size - synced)
        synced = size
        sync(fd)

    monkeypatch.setattr(os, "fsync", counted)
    write_whole(tmp_path / "file", [b"a" * 1000, b"b" * 1000, b"c" * 500])
    assert (tmp_path / "file").read_bytes() == b"a" * 1000 + b"b" * 1000 + b"c" * 500
    assert steps == [1000, 1000, 500, 0]
    steps.clear()
    synced = 0
    write_whole(tmp_path / "file", [])
    assert (tmp_path / "file").read_bytes() == b""
    assert steps == [0, 0]
