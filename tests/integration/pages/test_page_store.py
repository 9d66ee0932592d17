"""Pages go to an S3 store while a crawl runs, whatever the store does and whoever is killed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.everything import stored
from tests.support.crawling.verdicts import assert_complete
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.s3_server import FaultyS3, new_bucket
from tests.unit.page_store.test_uploads import in_store, pages

if TYPE_CHECKING:
    from collections.abc import Iterator

DELAY_MS = 100


def fetched_from(url: str, directory: Path) -> Path:
    """A directory with what the store has."""
    directory.mkdir()
    for name, data in in_store(url).items():
        (directory / name).write_bytes(data)
    return directory


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A directory on a disk of which something is used; the other one may be in memory."""
    with tempfile.TemporaryDirectory(prefix="bigcrawl-test-", dir="/var/tmp") as directory:
        yield Path(directory)


@pytest.mark.long("waits until an upload that was refused is tried again; another one here is not refused")
def test_a_crawl_pauses_while_files_that_wait_fill_the_disk(
    tmp_path: Path, on_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lines say so, when a pause begins and ends; then the crawl goes on, and in the end the store has all pages.

    An operator's pause that began meanwhile stays until the operator ends it.
    """
    warc = on_disk / "warc"
    warc.mkdir(parents=True)
    left = pages(warc)
    with (
        no_strays_below(tmp_path),
        FaultyS3() as server,
        SimulatedWeb(tmp_path / "web", hosts=4, pages=6) as web,
    ):
        url = f"{new_bucket(server.url, monkeypatch)}/pages"
        settings = {
            "BIGCRAWL_HOST_DELAY": 0.2,
            "BIGCRAWL_PARTITIONS": 8,
            "BIGCRAWL_WARC_DIR": warc,
            "BIGCRAWL_WARC_STORE_URL": url,
            "BIGCRAWL_WARC_DISK_PERCENT_MAX": 1,
        }
        server.become("500")
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            crawl.start()
            wait_until(lambda: "the crawl pauses until there is room" in crawl.log.read_text(), "it pauses")
            wait_until(lambda: "WARC files are not uploaded" in crawl.log.read_text(), "it says why")
            assert left.exists()
            crawl.frontier("pause")
            wait_until(lambda: "nothing moves: it is paused" in crawl.log.read_text(), "the node obeys")
            fetched = len(web.exchanges())
            server.become("")
            wait_until(lambda: "has room again" in crawl.log.read_text(), "there is room")
            lines = crawl.log.read_text().count("nothing moves: it is paused") + 3
            wait_until(lambda: crawl.log.read_text().count("nothing moves: it is paused") >= lines, "it stays")
            assert len(web.exchanges()) == fetched
            crawl.frontier("resume")
            assert crawl.wait(300) == 0
            said = crawl.log.read_text()
        assert f"WARC files are not uploaded to {url}: " in said
        assert "1 files there wait for the store; the crawl pauses until there is room: " in said
        pauses = said.count("the crawl pauses until there is room")
        assert said.count(" files there wait for the store; the crawl pauses until there is room: ") == pauses
        assert said.count("has room again; the crawl continues") == pauses
        wait_until(lambda: not list(warc.glob("[!.]*")), "the last process has moved the last file")
        assert set(web.expected()) <= set(stored(fetched_from(url, tmp_path / "fetched")))
        assert_complete(web.report(delay_ms=200))
