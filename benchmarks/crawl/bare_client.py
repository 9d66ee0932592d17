"""A client that only asks, reads and sleeps: as near to its delay as a process comes on this machine at this load."""

from __future__ import annotations

import http.client
import os
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.crawl.origin import Origin
from benchmarks.crawl.procfs import CRAWLER_CORE, ORIGIN_CORE

if TYPE_CHECKING:
    from pathlib import Path


def ask_again_and_again(directory: Path, hosts: int, delay_s: float, seconds: float) -> None:
    """Ask each host for a page, again a delay after each answer, for so long; the origin's log is in `directory`."""
    with Origin(directory, hosts=hosts, core=ORIGIN_CORE) as origin:
        urls = {urlsplit(url).netloc: urlsplit(url).path for url in origin.seeds_file.read_text().split()}
        ends_at_s = time.monotonic() + seconds
        asking = [threading.Thread(target=_ask, args=(*url, delay_s, ends_at_s)) for url in urls.items()]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()


def _ask(server: str, path: str, delay_s: float, ends_at_s: float) -> None:
    os.sched_setaffinity(0, {CRAWLER_CORE})  # of this thread
    connection = http.client.HTTPConnection(server, timeout=60)
    while time.monotonic() < ends_at_s:
        connection.request("GET", path)
        connection.getresponse().read()
        time.sleep(delay_s)
    connection.close()
