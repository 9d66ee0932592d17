"""A disk that does not answer, below the state of forms."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    import pytest


class HungDisk:
    """Syncs wait until it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked, self.answers = threading.Event(), threading.Event()
        self.syncs = 0
        sync = OsFiles.sync

        def hang(files: OsFiles, fd: int) -> None:
            self.syncs += 1
            self.is_asked.set()
            self.answers.wait()
            sync(files, fd)

        monkeypatch.setattr(OsFiles, "sync", hang)
