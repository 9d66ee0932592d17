"""Run `scrapy frontier warc compact` on a directory, killed at the n-th call that changes something on the disk."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.warc.files import OsFiles
from tests.unit.commands.pages.test_warc import asked

if TYPE_CHECKING:
    from collections.abc import Callable

calls_left = [int(sys.argv[2])]


def counted(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        if not calls_left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        calls_left[0] -= 1
        return call(*args)

    return run


for name in ("create", "sync", "rename", "remove"):
    setattr(OsFiles, name, counted(getattr(OsFiles, name)))
asked(Path(sys.argv[1]), "compact")
