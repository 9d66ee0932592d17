"""A crawl whose store refuses, hangs and cuts at random, and whose node and uploads are killed at random."""

from __future__ import annotations

import gzip
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.pages.test_page_store import fetched_from
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.everything import stored
from tests.support.crawling.verdicts import assert_complete, without_untold_gaps
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.s3_server import FaultyS3, new_bucket
from tests.unit.page_store.test_uploads import in_store

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1200)]

ROUNDS = 8
DELAY_MS = 500
SEED = 7


def uploads_of(directory: Path) -> Iterator[int]:
    """The processes that upload files of a directory."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"bigcrawl.page_store" in words and os.fsencode(directory) in words:
                yield int(process.name)


def test_nothing_is_lost_or_stored_twice_whatever_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end each record is in the store once, with an index beside each file, and nothing is left here."""
    dice = random.Random(SEED)
    warc = tmp_path / "crawl" / "warc"
    with (
        no_strays_below(tmp_path),
        FaultyS3() as server,
        SimulatedWeb(tmp_path / "web", hosts=16, pages=150) as web,
    ):
        url = f"{new_bucket(server.url, monkeypatch)}/pages"
        settings = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "BIGCRAWL_PARTITIONS": 8, "BIGCRAWL_WARC_STORE_URL": url}
        in_process: Counter[str] = Counter()
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            for number in range(ROUNDS):
                fetched, asked = len(web.exchanges()), len(server.seen)
                server.become(dice.choice(("", "", "500", "hang", "cut")))
                crawl.start()
                wait_until(lambda fetched=fetched: len(web.exchanges()) > fetched + 10, "pages are fetched")  # type: ignore[misc]
                server.become(dice.choice(("", "", "500", "cut")))
                if number:  # there is something to upload
                    wait_until(lambda asked=asked: len(server.seen) > asked, "an upload is under way")  # type: ignore[misc]
                if dice.random() < 0.7:
                    for pid in uploads_of(warc):
                        os.kill(pid, signal.SIGKILL)
                in_process.update(crawl.taken())
                crawl.kill()
                in_process.update(crawl.taken())
            server.become("")
            assert crawl.run(600) == 0
        wait_until(lambda: not list(warc.glob("[!.]*")), "the last process has moved the last file")
        there = in_store(url)
        names = [name.removesuffix(".warc.gz") for name in there if name.endswith(".warc.gz")]
        assert sorted(there) == sorted([f"{name}{end}" for name in names for end in (".cdxj", ".warc.gz")])
        assert len(names) > ROUNDS // 2
        texts = [gzip.decompress(data) for name, data in there.items() if name.endswith(".gz")]
        ids = [line for text in texts for line in text.split(b"\r\n") if line.startswith(b"WARC-Record-ID: ")]
        assert len(set(ids)) == len(ids)
        assert set(web.expected()) <= set(stored(fetched_from(url, tmp_path / "fetched")))
        assert_complete(without_untold_gaps(web.report(delay_ms=DELAY_MS), DELAY_MS), in_process)
