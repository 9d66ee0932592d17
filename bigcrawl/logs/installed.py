"""The handler of log lines in JSON, if it was installed; `json_lines` is imported only then."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = "json"


class _Installed:
    def __init__(self) -> None:
        self.handler: logging.Handler | None = None
        self._record_crawl: Callable[[str, str, str], None] | None = None

    def install(self, handler: logging.Handler, record_crawl: Callable[[str, str, str], None]) -> None:
        self.remove()
        self._record_crawl = record_crawl
        logging.root.setLevel(logging.NOTSET)
        logging.root.addHandler(handler)
        self.handler = handler

    def remove(self) -> None:
        handler, self.handler = self.handler, None
        if handler is not None:
            logging.root.removeHandler(handler)
            handler.close()

    def record_crawl(self, crawl: str, spider: str, node: str) -> None:
        if self._record_crawl is not None:
            self._record_crawl(crawl, spider, node)

    def set_level(self, level: str | int) -> None:
        if self.handler is not None:
            self.handler.setLevel(level)


INSTALLED = _Installed()
